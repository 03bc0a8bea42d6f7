// A box that finds concepts by name: type, choose with the arrows, Enter.

import { fill, h, plural } from "./dom.js";
import { at, get, query } from "./api.js";

let count = 0;

export function picker(index, { label, placeholder, choose }) {
  const list = `concepts-${(count += 1)}`;
  let found = [];
  let active = -1;
  let asked = 0;
  let waiting = false; // for the concepts of what is written now
  let wanted = false; // Enter was pressed meanwhile
  const box = h("ul", { class: "choices", id: list, role: "listbox", "aria-label": label, hidden: true });
  const field = h("input", {
    class: "field", type: "text", role: "combobox", "aria-label": label, placeholder, autocomplete: "off", spellcheck: "false",
    "aria-expanded": "false", "aria-controls": list, "aria-autocomplete": "list",
  });
  const close = () => { box.hidden = true; field.setAttribute("aria-expanded", "false"); field.removeAttribute("aria-activedescendant"); active = -1; };
  const take = (concept) => { field.value = ""; wanted = false; close(); choose(concept); };
  const draw = () => {
    fill(box, found.map((one, place) => h("li", {
      id: `${list}-${place}`, role: "option", "aria-selected": String(place === active),
      onmousedown: (event) => { event.preventDefault(); take(one); },
    }, h("span", {}, one.label), h("span", { class: "soft small" }, `#${one.id}, ${plural(one.documents, "document")}`))),
    found.length === 0 && h("li", { class: "soft", role: "option", "aria-disabled": "true", "aria-selected": "false" }, "no concept has such a name"));
    box.hidden = false;
    field.setAttribute("aria-expanded", "true");
    if (active >= 0) field.setAttribute("aria-activedescendant", `${list}-${active}`);
  };
  field.addEventListener("input", async () => {
    const turn = (asked += 1);
    waiting = wanted = false;
    if (!field.value.trim()) return close();
    waiting = true;
    const reply = await get(at(index, `/concepts?${query({ find: field.value.trim(), limit: 8 })}`)).catch(() => null);
    if (turn !== asked) return undefined;
    waiting = false;
    if (!reply) return undefined;
    found = reply.concepts;
    active = found.length ? 0 : -1;
    if (wanted && found.length) return take(found[0]);
    return draw();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !box.hidden) { event.stopPropagation(); close(); return; }
    if (waiting && event.key === "Enter") { event.preventDefault(); wanted = true; return; }
    if (box.hidden || !found.length) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); active = (active + step + found.length) % found.length; draw(); }
    if (event.key === "Enter" && active >= 0) { event.preventDefault(); take(found[active]); }
  });
  field.addEventListener("blur", () => setTimeout(close, 100));
  return h("div", { class: "picker" }, field, box);
}
