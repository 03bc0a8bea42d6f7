// Why a document is a hit: its score by lines of concepts that say the same, and by pairs of words.

import { h, named, number, plural, short } from "./dom.js";
import { shownLines } from "./groups.js";

const WORDS = 4; // words of the document that are shown with a word of the query
const PAIRS = 8; // words of the query that are shown
const OTHERS = "others";

// hit: with groups and contributions. kind: the colour of a line. open: the lines that are open, kept up to date.
export function lines(hit, { link, key: keyOf = (line) => line.concepts[0], kind = () => "", open = new Set(), toggled = () => {}, focus = () => {} }) {
  const { shown, left, rest } = shownLines(hit);
  const values = new Map(hit.contributions.map((part) => [part.concept, part]));
  const most = Math.max(...shown.map((line) => Math.abs(line.value)), Math.abs(rest), 1e-9);
  const row = (key, colour, label, form, value, inner) => {
    const box = h("details", { class: `line ${colour}${form ? " form" : ""}`, "data-group": key, open: open.has(key), ontoggle: () => { open[box.open ? "add" : "delete"](key); toggled(); } },
      h("summary", { onmouseenter: () => focus(key), onmouseleave: () => focus(null) },
        h("span", { class: "line-name", title: label }, label), h("span", { class: "line-bar", "aria-hidden": "true" }, h("span", { style: { width: `${(100 * Math.abs(value)) / most}%` } })), h("span", { class: "number" }, number(value))),
      inner);
    return box;
  };
  const members = (line) => {
    const parts = line.concepts.map((concept) => values.get(concept)).filter(Boolean);
    const others = line.value - parts.reduce((sum, part) => sum + part.value, 0);
    return [
      parts.map((part) => h("li", {}, named(part, link(part.concept), part.label),
        h("span", { class: "number" }, h("span", { class: "soft product" }, `${number(part.query)} × ${number(part.document)} = `), number(part.value)))),
      parts.length < line.concepts.length && h("li", { class: "soft" }, plural(line.concepts.length - parts.length, "weaker concept"), h("span", { class: "number" }, number(others))),
    ];
  };
  const list = (...children) => h("ul", { class: "members" }, children);
  return h("div", { class: "lines-of" },
    shown.map((line) => row(keyOf(line), kind(line), line.label, line.form, line.value, list(members(line)))),
    left.length > 0 && row(OTHERS, "kx", `${OTHERS}: ${left.map((line) => short(line.label, 1)).join(", ")}`, false, rest, list(left.map(members))));
}

// matches: as a hit's "words" has them. Their values sum to the score.
export function pairs(matches) {
  const shown = matches.slice(0, PAIRS);
  const rest = matches.slice(PAIRS).reduce((sum, match) => sum + match.value, 0);
  return h("ul", { class: "pairs" },
    shown.map((match) => h("li", {},
      h("span", {}, h("b", { class: match.kind === "word" ? "" : "soft" }, match.word), h("span", { class: "unseen" }, " found "), h("span", { class: "soft", "aria-hidden": "true" }, " ↔ "),
        match.found.slice(0, WORDS).map((one, place) => [place ? ", " : "", h("span", { title: number(one.value) }, one.word)])),
      h("span", { class: "number soft" }, number(match.value)))),
    matches.length > PAIRS && h("li", { class: "soft" }, plural(matches.length - PAIRS, "other word"), h("span", { class: "number" }, number(rest))));
}
