// A score as a stacked bar of named contributions. One stop for the keyboard; arrows go from part to part.

import { h, number, short } from "./dom.js";

export function bar(hit, highest, palette, { focus, link }) {
  const parts = hit.contributions.filter((part) => palette.has(part.concept) && part.value > 0);
  const known = parts.reduce((sum, part) => sum + part.value, 0);
  const rest = Math.max(0, hit.score - known);
  const share = (value) => `${(100 * value) / (hit.score || 1)}%`;
  const links = parts.map((part, place) => h("a", {
    class: `piece ${palette.of(part.concept)}`, href: link(part.concept), tabindex: place ? "-1" : "0",
    "data-concept": part.concept, "aria-label": `${part.label}: ${number(part.value)} of ${number(hit.score)}`,
    onmouseenter: () => focus(part.concept), onmouseleave: () => focus(null),
    onfocus: () => focus(part.concept), onblur: () => focus(null),
  }));
  const pieces = links.map((piece, place) => h("li", { style: { width: share(parts[place].value) } }, piece));
  if (rest > 0) pieces.push(h("li", { style: { width: share(rest) } }, h("span", { class: "piece rest", title: `other concepts: ${number(rest)}` }, h("span", { class: "unseen" }, `other concepts: ${number(rest)}`))));
  const arrows = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const now = links.indexOf(document.activeElement);
    if (!step || now < 0) return;
    event.preventDefault();
    const next = links[(now + step + links.length) % links.length];
    for (const one of links) one.tabIndex = one === next ? 0 : -1;
    next.focus();
  };
  return h("ul", { class: "bar", "aria-label": `What the score ${number(hit.score)} is the sum of`, onkeydown: arrows, style: { width: `${Math.max(4, (100 * hit.score) / (highest || 1))}%` } }, pieces);
}

// The names of the strongest parts; of the one in focus, all of it.
export function legend(hit, palette, concept, { focus, link }) {
  const chosen = concept === null ? null : hit.contributions.find((part) => part.concept === concept);
  if (chosen) {
    return h("p", { class: "legend" }, h("b", {}, h("span", { class: `dot ${palette.of(chosen.concept)}` }), chosen.label),
      h("span", { class: "soft number" }, ` query ${number(chosen.query)} × document ${number(chosen.document)} = ${number(chosen.value)}`));
  }
  const shown = hit.contributions.slice(0, 4);
  const rest = hit.score - shown.reduce((sum, part) => sum + part.value, 0);
  return h("p", { class: "legend" }, shown.map((part) => h("a", {
    class: "name", href: link(part.concept), tabindex: "-1", title: part.label,
    onmouseenter: () => focus(part.concept), onmouseleave: () => focus(null),
  }, h("span", { class: `dot ${palette.of(part.concept)}` }), short(part.label), " ", h("span", { class: "soft number" }, number(part.value)))),
  rest > 0.005 && h("span", { class: "soft number" }, `others ${number(rest)}`));
}
