// Text with the words marked that raised a concept.

import { h, Text } from "./dom.js";

const WINDOW = 290;
const SHORT = 160;

// Where the text begins in what was encoded: the title, a space, the text.
export function offset(title) {
  if (!title) return 0;
  return new Text(title).length + 1 - (title.length - title.trimStart().length);
}

// marks: [{start, stop, kind, weight, group}], counted from `from`; where two overlap the weightier one is shown.
export function marked(text, marks, { from = 0, start = 0, stop = Infinity } = {}) {
  const whole = text instanceof Text ? text : new Text(text);
  const end = Math.min(whole.length, stop);
  const best = new Map();
  for (const mark of marks) {
    const at = mark.start - from;
    if (at < start || mark.stop - from > end || mark.stop <= mark.start) continue;
    const known = best.get(at);
    if (!known || known.weight < mark.weight) best.set(at, { ...mark, start: at, stop: mark.stop - from });
  }
  const parts = [];
  let place = start;
  for (const mark of [...best.values()].sort((one, other) => one.start - other.start)) {
    if (mark.start < place) continue;
    parts.push(whole.slice(place, mark.start));
    parts.push(h("mark", { class: mark.kind, "data-group": mark.group, style: mark.strength === undefined ? {} : { "--mark": mark.strength.toFixed(3) } }, whole.slice(mark.start, mark.stop)));
    place = mark.stop;
  }
  parts.push(whole.slice(place, end));
  return parts;
}

// The beginning of a text, or what is around the first word of the query in it.
export function shortened(text, query) {
  const words = query.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 3);
  const flat = text.replaceAll(/\s+/g, " ");
  const places = words.map((word) => flat.toLowerCase().indexOf(word)).filter((place) => place >= 0);
  const start = places.length && flat.length > SHORT ? flat.lastIndexOf(" ", Math.max(0, Math.min(...places) - 40)) + 1 : 0;
  return `${start ? "… " : ""}${flat.slice(start, start + SHORT)}${start + SHORT < flat.length ? " …" : ""}`;
}

// Which passage of a long document was found.
export function where(hit) {
  const best = hit.passages?.[0];
  if (!best || best.count === 1) return null;
  return h("p", { class: "soft small where" }, [`passage ${best.number + 1} of ${best.count}`, ...best.headings].join(" › "));
}

// About three lines around the words that gave most to the score; of a long document, in the passage that was found.
export function snippet(hit, marks) {
  const whole = new Text(hit.text.replaceAll(/\s/g, " "));
  const from = offset(hit.title);
  if (whole.length <= WINDOW) return marked(whole, marks, { from });
  const inside = marks.map((mark) => ({ at: mark.start - from, weight: mark.weight })).filter((mark) => mark.at >= 0);
  const first = hit.passages?.[0]?.start || 0;
  let start = first;
  let most = -1;
  for (const begin of [first, ...inside.map((mark) => Math.max(0, mark.at - 40))]) {
    const heat = inside.reduce((sum, mark) => sum + (mark.at >= begin && mark.at < begin + WINDOW - 20 ? mark.weight : 0), 0);
    if (heat > most * 1.001) { most = heat; start = begin; }
  }
  start = Math.min(start, whole.length - WINDOW);
  if (start > 0) start += Math.max(0, whole.slice(start, start + 30).indexOf(" ") + 1);
  let stop = Math.min(whole.length, start + WINDOW);
  if (stop < whole.length) stop = start + Math.max(200, whole.slice(start, stop).lastIndexOf(" "));
  return [start > 0 ? "… " : "", ...marked(whole, marks, { from, start, stop }), stop < whole.length ? "\u00a0…" : ""];
}
