// A slider for one concept or for all of a group: from off through 1x, which changes nothing, to 4x, in equal ratios.

import { h } from "./dom.js";

const END = 8; // steps on each side of 1x; four steps double

export const factorOf = (step) => (step <= -END ? 0 : 2 ** (step / 4));
export const stepOf = (factor) => (factor <= 0 ? -END : Math.max(-END + 1, Math.min(END, Math.round(4 * Math.log2(factor)))));
export const named = (factor) => (factor === 0 ? "off" : `${factor.toFixed(factor >= 1 ? 1 : 2)}×`);
export const turnedUp = (factor) => (factor <= 0 ? 2 : Math.max(factor, Math.min(factorOf(END), 2 * factor))); // twice as much, 4x at most
export const MIXED = "mixed";

// The factor that all have, or null where they differ.
export function common(factors) {
  return factors.every((factor) => factor === factors[0]) ? factors[0] : null;
}

// factors: of each concept that it moves, as they are now. Gives the parts, and what shows them as they are now.
export function slider(label, factors, change, props) {
  const value = h("output", { class: "factor number" });
  const range = h("input", {
    type: "range", min: -END, max: END, step: 1, "aria-label": label, ...props,
    oninput: () => change(factorOf(Number(range.value))),
    ondblclick: () => change(1),
  });
  const update = () => {
    const all = factors();
    const factor = common(all);
    const steps = all.map(stepOf);
    const step = factor === null ? Math.round(steps.reduce((sum, one) => sum + one, 0) / steps.length) : stepOf(factor);
    value.textContent = factor === null ? MIXED : named(factor);
    range.value = step;
    range.setAttribute("aria-valuetext", value.textContent);
    range.style.setProperty("--at", `${((step + END) / (2 * END)) * 100}%`);
    return factor === null || stepOf(factor) !== 0;
  };
  return { value, range, update };
}
