// A score as a stacked bar of a few named lines. One stop for the keyboard; arrows go from part to part.

import { h, number, short } from "./dom.js";
import { shownLines } from "./groups.js";

export const FORM = "form of the words: endings, punctuation, the text as a whole";
const about = (line) => (line.form ? `${line.label} (${FORM})` : line.label);

// groups: of the query; open: opens a line, or the others by null.
export function bar(hit, highest, { groups, palette, focus, open }) {
  const { shown } = shownLines(hit);
  const parts = shown.filter((line) => line.value > 0);
  const rest = Math.max(0, hit.score - parts.reduce((sum, line) => sum + line.value, 0));
  const share = (value) => `${(100 * value) / (hit.score || 1)}%`;
  const piece = (key, kind, name, value, place) => h("button", {
    type: "button", class: `piece ${kind}`, tabindex: place ? "-1" : "0", "data-group": key ?? "", "aria-expanded": "false",
    "aria-label": `${name}: ${number(value)} of ${number(hit.score)}`, onclick: () => open(key),
    onmouseenter: () => focus(key), onmouseleave: () => focus(null), onfocus: () => focus(key), onblur: () => focus(null),
  });
  const pieces = parts.map((line, place) => {
    const key = groups.key(line.concepts[0]);
    return piece(key, `${palette.of(key)}${line.form ? " form" : ""}`, about(line), line.value, place);
  });
  if (rest > 0.005) pieces.push(piece(null, "rest", "others", rest, pieces.length));
  const values = [...parts.map((line) => line.value), rest];
  const arrows = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const now = pieces.indexOf(document.activeElement);
    if (!step || now < 0) return;
    event.preventDefault();
    const next = pieces[(now + step + pieces.length) % pieces.length];
    for (const one of pieces) one.tabIndex = one === next ? 0 : -1;
    next.focus();
  };
  return h("ul", { class: "bar", "aria-label": `What the score ${number(hit.score)} is the sum of`, onkeydown: arrows, style: { width: `${Math.max(4, (100 * hit.score) / (highest || 1))}%` } },
    pieces.map((one, place) => h("li", { style: { width: share(values[place]) } }, one)));
}

// The names of the lines with their values; the keyboard reaches the same by the bar.
export function legend(hit, { groups, palette, focus, open }) {
  const { shown, left, rest } = shownLines(hit);
  const name = (key, kind, words, title, value) => h("button", {
    type: "button", class: `name ${kind}`, tabindex: "-1", title, "data-group": key ?? "",
    onclick: () => open(key), onmouseenter: () => focus(key), onmouseleave: () => focus(null),
  }, h("span", { class: "dot" }), words, " ", h("span", { class: "soft number" }, number(value)));
  return h("p", { class: "legend" }, shown.map((line) => {
    const key = groups.key(line.concepts[0]);
    return name(key, `${palette.of(key)}${line.form ? " form" : ""}`, short(line.label), about(line), line.value);
  }), Math.abs(rest) > 0.005 && name(null, "rest", "others", left.map((line) => line.label).join("; "), rest));
}
