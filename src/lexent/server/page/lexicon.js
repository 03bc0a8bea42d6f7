// The lexicon: all concepts in a table that can be searched, and how often they are used.

import { at, get, query } from "./api.js";
import { fill, h, percent, plural, say, whole } from "./dom.js";
import { ranks } from "./plots.js";
import { bones, empty, waiting, wrong } from "./states.js";

const EACH = 50;
const SORTS = [["id", "Number"], ["label", "Name"], ["", "Kind"], ["frequency", "In named texts"], ["documents", "Documents"]];

export function show(root, site, signal) {
  const state = { find: site.state.find, category: site.state.category, sort: site.state.sort || "documents", page: site.state.page };
  const plot = h("section", { class: "card pad" });
  const table = h("div");
  const field = h("input", { class: "field", type: "search", name: "find", value: state.find, placeholder: "Find by name", "aria-label": "Find concepts by name", autocomplete: "off", oninput: () => { clearTimeout(field.timer); field.timer = setTimeout(() => change({ find: field.value.trim(), page: 1 }), 150); } });
  const kinds = h("select", { "aria-label": "Kind", onchange: () => change({ category: kinds.value, page: 1 }) },
    [["", "All kinds"], ["lexical", "Forms of one word"], ["narrow", "A few related words"], ["broad", "Topics"]].map(([value, words]) => h("option", { value, selected: value === state.category }, words)));
  let turn = 0;
  async function change(values, first = false) {
    Object.assign(state, values);
    site.replace({ find: state.find, category: state.category, sort: state.sort === "documents" ? "" : state.sort, page: state.page });
    const now = (turn += 1);
    const done = first ? waiting(table, bones(6, "low")) : () => {};
    try {
      const found = await get(at(site.index, `/concepts?${query({ ...state, limit: EACH })}`), { signal });
      done();
      if (now === turn) drawTable(table, site, found, state, change);
    } catch (error) {
      done();
      if (error.name !== "AbortError") fill(table, wrong(error, () => change({}, true)));
    }
  }
  fill(root, h("h1", {}, "Lexicon"), plot, h("div", { class: "row filters" }, field, kinds), table);
  drawPlot(plot, site, signal);
  change({}, true);
}

async function drawPlot(place, site, signal) {
  const done = waiting(place, bones(1));
  try {
    const found = await get(at(site.index, "/lexicon"), { signal });
    done();
    const kinds = [["broad", "topics, spread over many words"], ["narrow", "a few related words"], ["lexical", "the forms of one word"], ["unknown", "not sorted"]].filter(([name]) => found.categories[name]);
    fill(place, h("h2", {}, "How often each concept is used"),
      h("p", { class: "soft" }, `${found.name}: ${plural(found.concepts, "concept")}, ${whole(found.live)} of them in this index. Both axes are logarithmic.`),
      h("div", { class: "usage" }, found.live > 0 ? ranks(found, site.facts().documents) : h("p", {}, "No concept is used yet."),
        h("dl", { class: "kinds" }, kinds.map(([name, words]) => h("div", {}, h("dt", {}, h("span", {}, h("b", {}, name), `, ${words}`), h("span", { class: "number soft" }, whole(found.categories[name]))), h("dd", {}, h("span", { style: { width: `${(100 * found.categories[name]) / found.concepts}%` } })))))));
  } catch (error) {
    done();
    if (error.name !== "AbortError") fill(place, wrong(error, () => drawPlot(place, site, signal)));
  }
}

function drawTable(place, site, found, state, change) {
  if (!found.total) { fill(place, empty("No concept has such a name", "Try another word, or fewer letters.")); say("No concept found"); return; }
  const last = Math.ceil(found.total / EACH);
  const head = SORTS.map(([sort, words]) => h("th", { scope: "col", "aria-sort": sort && sort === state.sort && !state.find ? (sort === "id" || sort === "label" ? "ascending" : "descending") : null, class: sort === "frequency" || sort === "documents" ? "right" : "" },
    sort && !state.find ? h("button", { type: "button", class: "sort", onclick: () => change({ sort, page: 1 }) }, words, sort === state.sort ? (sort === "id" || sort === "label" ? " ↑" : " ↓") : "") : words));
  const rows = found.concepts.map((one) => h("tr", {}, h("td", { class: "number soft" }, `#${one.id}`),
    h("th", { scope: "row" }, h("a", { href: site.link({ screen: "concept", id: String(one.id) }) }, one.label), one.source === "user" && h("span", { class: "tag" }, "yours"), one.form && h("span", { class: "tag", title: one.form }, "form")),
    h("td", {}, one.category), h("td", { class: "number right" }, one.frequency ? percent(one.frequency) : ""), h("td", { class: "number right" }, whole(one.documents))));
  const turn = (page, words) => h("button", { class: "button", type: "button", disabled: page < 1 || page > last, onclick: () => change({ page }) }, words);
  fill(place, h("div", { class: "scroll card", tabindex: "0", role: "region", "aria-label": "Concepts" }, h("table", { class: "table" }, h("caption", { class: "unseen" }, "Concepts"), h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows))),
    h("div", { class: "row pages" }, turn(state.page - 1, "Back"), h("span", { class: "soft" }, `page ${whole(state.page)} of ${whole(last)}, ${plural(found.total, "concept")}`), turn(state.page + 1, "Next")));
  say(`${plural(found.total, "concept")}`);
}
