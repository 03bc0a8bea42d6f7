// The filter as a row of facets: a field of the index each, with its values to tick or its range to set.

import { at, get } from "./api.js";
import { fill, h, plural, whole } from "./dom.js";

const FACETS = 12; // fields that are shown; an index may have hundreds
const FEW = 12; // numbers are ticked where there are no more of them

const isRange = (condition) => condition !== null && typeof condition === "object" && !Array.isArray(condition)
  && Object.keys(condition).every((name) => name === "gte" || name === "lte");

// The filter as it stands in the address; null where it is no object of JSON.
export function parsed(filter) {
  if (!filter) return {};
  try {
    const found = JSON.parse(filter);
    return found !== null && typeof found === "object" && !Array.isArray(found) ? found : null;
  } catch {
    return null;
  }
}

// filter: as it is now, as text; changed: called with the new one.
export function facets(site, signal, { filter, changed }) {
  const root = h("div", { class: "facets", role: "group", "aria-label": "Filter" });
  const set = (name, condition) => {
    const now = { ...parsed(filter()) };
    if (condition === null) delete now[name];
    else now[name] = condition;
    changed(Object.keys(now).length ? JSON.stringify(now) : "");
    rest();
  };
  const other = h("span");
  const known = new Set();
  // What a facet cannot show, such as a filter that was written by hand: it can be dropped.
  const rest = () => {
    const now = parsed(filter());
    const left = now === null ? [[null, filter()]] : Object.entries(now).filter(([name, condition]) => !known.has(name) || !shows(condition));
    fill(other, left.map(([name, condition]) => h("button", { class: "button small", type: "button", "aria-label": `Drop the filter ${name ?? condition}`,
      onclick: () => (name === null ? (changed(""), rest()) : set(name, null)) }, `${name === null ? condition : `${name}: ${inWords(condition)}`} ×`)));
  };
  get(at(site.index, "/fields"), { signal }).then((found) => {
    const shown = found.fields.filter((field) => field.kind !== "mixed" && field.distinct > 1).slice(0, FACETS);
    for (const field of shown) known.add(field.name);
    fill(root, shown.map((field) => facet(field, () => (parsed(filter()) ?? {})[field.name], (condition) => set(field.name, condition))), other);
    rest();
  }).catch(() => {}); // hits without facets are still hits
  return root;
}

// A condition as a facet shows it.
export function inWords(condition) {
  if (!shows(condition)) return JSON.stringify(condition);
  return isRange(condition) ? `${condition.gte ?? ""} – ${condition.lte ?? ""}` : [condition].flat().join(", ");
}

const shows = (condition) => condition === null || typeof condition !== "object" || Array.isArray(condition) || isRange(condition);

function facet(field, condition, set) {
  const chosen = h("span", { class: "facet-chosen" });
  const tick = !["number", "date"].includes(field.kind) || (field.kind === "number" && field.distinct <= FEW);
  const body = tick ? values(field, condition, (now) => { set(now); tell(); }) : range(field, condition, (now) => { set(now); tell(); });
  const tell = () => {
    const now = condition();
    const text = now === undefined ? "" : inWords(now);
    chosen.textContent = text && `: ${text}`;
    box.classList.toggle("on", Boolean(text));
  };
  const box = h("details", { class: "facet", name: "facet", onkeydown: (event) => {
    if (event.key !== "Escape") return;
    box.open = false;
    box.firstChild.focus();
  } }, h("summary", {}, field.name, chosen), h("div", { class: "facet-body card" }, body));
  tell();
  return box;
}

function values(field, condition, set) {
  const all = field.values.map(({ value }) => value);
  const chosen = new Set(condition() === undefined || isRange(condition()) ? [] : [condition()].flat());
  const change = (value, on) => {
    chosen[on ? "add" : "delete"](value);
    set(chosen.size ? [...chosen] : null);
  };
  return h("fieldset", {}, h("legend", { class: "unseen" }, field.name),
    [...new Set([...chosen, ...all])].map((value) => h("label", {},
      h("input", { type: "checkbox", checked: chosen.has(value), onchange: (event) => change(value, event.target.checked) }),
      h("span", {}, String(value)), h("span", { class: "soft number" }, whole(field.values.find((one) => one.value === value)?.documents ?? 0)))),
    field.distinct > all.length && h("p", { class: "soft small" }, `and ${plural(field.distinct - all.length, "rarer value")}`));
}

function range(field, condition, set) {
  const now = isRange(condition() ?? null) ? condition() : {};
  const most = Math.max(...field.histogram.map((bin) => bin.documents), 1);
  const [low, high] = [field.histogram[0]?.low ?? "", field.histogram.at(-1)?.high ?? ""];
  const end = (name, words, value, placeholder) => h("label", {}, words, " ",
    h("input", { class: "field", type: field.kind === "number" ? "number" : "text", step: "any", value: value ?? "", placeholder, onchange: (event) => {
      const given = event.target.value.trim();
      if (given) now[name] = field.kind === "number" ? Number(given) : given;
      else delete now[name];
      set(Object.keys(now).length ? { ...now } : null);
    } }));
  return [h("div", { class: "facet-bins", role: "img", "aria-label": `From ${low} to ${high}; the fullest of ${plural(field.histogram.length, "bar")} has ${whole(most)} documents` },
    field.histogram.map((bin) => h("span", { title: `${bin.low}${bin.high === bin.low ? "" : ` to ${bin.high}`}: ${plural(bin.documents, "document")}`, style: { height: `${(100 * bin.documents) / most}%` } }))),
  h("div", { class: "row" }, end("gte", "From", now.gte, low), end("lte", "To", now.lte, high))];
}
