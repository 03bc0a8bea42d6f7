// What holds beside the query, said on the screens that have no sliders, with a way to drop it.

import { at, get } from "./api.js";
import { fill, h, plural, short } from "./dom.js";
import { inWords, parsed } from "./facets.js";
import { named } from "./slider.js";

const NAMES = 6; // steered concepts that are named; the others are counted

export function keptNote(site, signal) {
  const { steer, k, filter } = site.state;
  if (!steer.size && !filter && k === 10) return null;
  const steered = [...steer].slice(0, NAMES).map(([id, factor]) => {
    const name = h("span", {}, `#${id}`);
    get(at(site.index, `/concepts/${id}?limit=1`), { signal }).then((found) => fill(name, short(found.label, 3))).catch(() => {}); // a word of the index has no page
    return h("span", { class: "tag" }, name, ` ${named(factor)}`);
  });
  return h("p", { class: "row small kept", "aria-label": "What holds on every screen" },
    steer.size > 0 && [h("span", { class: "soft" }, "Steered:"), steered, steer.size > NAMES && h("span", { class: "soft" }, `and ${plural(steer.size - NAMES, "other")}`)],
    filter && Object.entries(parsed(filter) ?? { filter }).map(([name, condition]) => h("span", { class: "tag" }, `${name}: ${inWords(condition)}`)),
    k !== 10 && h("span", { class: "tag" }, plural(k, "hit")),
    h("a", { href: site.link({ ...site.state, steer: new Map(), k: 10, filter: "" }) }, "Drop all"));
}
