// Sliders for the concepts of a query: from off through 1x, which changes nothing, to 4x, in equal ratios.

import { h, short } from "./dom.js";

const END = 8; // steps on each side of 1x; four steps double

export const factorOf = (step) => (step <= -END ? 0 : 2 ** (step / 4));
export const stepOf = (factor) => (factor <= 0 ? -END : Math.max(-END + 1, Math.min(END, Math.round(4 * Math.log2(factor)))));
export const named = (factor) => (factor === 0 ? "off" : `${factor.toFixed(factor >= 1 ? 1 : 2)}×`);

export function slider(concept, factor, palette, { change, focus, link, remove }) {
  const value = h("output", { class: "factor number" }, named(factor));
  const range = h("input", {
    type: "range", min: -END, max: END, step: 1, value: stepOf(factor), "aria-label": `How much ${concept.label} counts`,
    "aria-valuetext": named(factor), "data-concept": concept.id,
    oninput: () => {
      const chosen = factorOf(Number(range.value));
      paint(chosen);
      change(concept.id, chosen);
    },
    ondblclick: () => { range.value = 0; range.dispatchEvent(new Event("input")); },
    onfocus: () => focus(concept.id), onblur: () => focus(null),
  });
  const row = h("li", { class: `slide ${palette.of(concept.id)}`, "data-concept": concept.id, onmouseenter: () => focus(concept.id), onmouseleave: () => focus(null) },
    h("span", { class: "slide-name" }, h("span", { class: "dot" }), h("a", { href: link(concept.id), title: concept.label }, short(concept.label, 3))),
    value, range,
    remove && h("button", { class: "button plain small", type: "button", "aria-label": `Remove ${concept.label}`, onclick: () => remove(concept.id) }, "×"));
  function paint(chosen) {
    value.textContent = named(chosen);
    range.setAttribute("aria-valuetext", named(chosen));
    row.classList.toggle("moved", stepOf(chosen) !== 0);
    range.style.setProperty("--at", `${((stepOf(chosen) + END) / (2 * END)) * 100}%`);
  }
  paint(factor);
  return row;
}
