// Compare: the same query by concepts, by dense vectors and by words, with lines between the ranks of one document.

import { weighing } from "./address.js";
import { at, post } from "./api.js";
import { fill, h, number, plural, say, svg, whole } from "./dom.js";
import { keptNote } from "./kept.js";
import { shortened } from "./passage.js";
import { lines as reasons } from "./reasons.js";
import { bones, empty, tooLong, waiting, wrong } from "./states.js";

const NAMES = { concepts: "Concepts", dense: "Dense", words: "Words" };

export function show(root, site, signal) {
  const { q } = site.state;
  const field = h("input", { type: "search", name: "q", value: q, "aria-label": "Query to compare", placeholder: "The same question, asked three ways", autocomplete: "off" });
  const trouble = h("div");
  const submit = (event) => {
    event.preventDefault();
    fill(trouble, tooLong(field.value.trim(), site.maxQuery));
    if (!trouble.firstChild) site.go({ screen: "compare", q: field.value.trim() });
  };
  const place = h("section", { "aria-label": "Rankings" });
  fill(root, h("h1", {}, "Compare"), h("p", { class: "soft" }, "One query under several systems over the same documents. Lines join the ranks of one document."),
    h("form", { class: "ask", role: "search", onsubmit: submit }, h("div", { class: "ask-box" }, field, h("button", { class: "button main", type: "submit" }, "Compare")), trouble), keptNote(site, signal), place);
  if (!q) { fill(place, empty("Ask something", "Each system ranks all documents of the index by itself; nothing is mixed.")); field.focus(); return; }
  load(place, site, signal);
}

async function load(place, site, signal) {
  const done = waiting(place, bones(3), "Still working. The words of all documents are counted once, when they are first needed.");
  try {
    const found = await post(at(site.index, "/compare"), { ...weighing(site.state), query: site.state.q, k: site.state.k }, { signal });
    done();
    draw(place, site, found, signal);
  } catch (error) {
    done();
    if (error.name !== "AbortError") fill(place, wrong(error, () => load(place, site, signal)));
  }
}

function draw(place, site, found, signal) {
  const shown = found.systems.filter((system) => system.missing === null);
  const missing = found.systems.filter((system) => system.missing !== null);
  const first = new Map(shown[0].hits.map((hit) => [hit.id, hit.rank]));
  const focus = (id) => {
    for (const one of place.querySelectorAll("[data-id]")) one.classList.toggle("on", id !== null && one.dataset.id === id);
    place.classList.toggle("chosen", id !== null);
  };
  const item = (system, hit) => {
    const here = first.get(hit.id);
    const words = system === shown[0] ? null : here === undefined ? h("span", { class: "move new", "aria-label": `not among the first ${site.state.k} by concepts` }, "new") : here === hit.rank ? h("span", { class: "move same" }, "=") : h("span", { class: `move ${here > hit.rank ? "up" : "down"}`, "aria-label": `rank ${here} by concepts` }, `${here > hit.rank ? "▲" : "▼"}${Math.abs(here - hit.rank)}`);
    return h("li", { "data-id": hit.id, onmouseenter: () => focus(hit.id), onmouseleave: () => focus(null) },
      h("div", { class: "ranked" }, h("span", { class: "rank number" }, hit.rank), h("a", { href: site.link({ screen: "document", id: hit.id }), onfocus: () => focus(hit.id), onblur: () => focus(null) }, hit.title || hit.id), words),
      h("p", { class: "passage small" }, shortened(hit.text, site.state.q)), why(site, hit, signal));
  };
  const columns = shown.map((system) => h("div", { class: "system" }, h("h2", {}, NAMES[system.kind] || system.name, " ", h("span", { class: "tag" }, system.name)),
    h("p", { class: "soft small" }, `${system.about}; ${number(system.took_ms, 1)} ms`),
    system.hits.length ? h("ol", { class: "ranking" }, system.hits.map((hit) => item(system, hit))) : h("p", { class: "soft" }, "finds nothing")));
  const lines = svg("svg", { class: "lines", "aria-hidden": "true" });
  const board = h("div", { class: "board", style: { "--count": String(columns.length) } }, columns, lines);
  fill(place, h("p", { class: "soft agree" }, agreement(shown, site.state.k)), board, missing.map((system) => h("div", { class: "notice" }, h("h2", {}, `${NAMES[system.kind]} is not here`), h("p", {}, system.missing))));
  const join = () => drawLines(board, lines, columns);
  join();
  new ResizeObserver(join).observe(board);
  say(agreement(shown, site.state.k));
}

// Why a document has its rank by concepts, asked for when it is opened.
function why(site, hit, signal) {
  const place = h("div");
  const open = async () => {
    if (!box.open || place.firstChild) return;
    const done = waiting(place, bones(2, "low"));
    try {
      const found = await post(at(site.index, "/explain"), { ...weighing(site.state), query: site.state.q, document: hit.id, tokens: 0, words: false }, { signal });
      done();
      fill(place, h("p", { class: "soft small" }, found.rank === null ? "By concepts it is not found." : `By concepts it is number ${whole(found.rank)} of ${whole(found.found)}, with a score of ${number(found.score)}.`),
        found.groups.length > 0 && reasons(found, { link: (id) => site.link({ screen: "concept", id: String(id) }) }));
    } catch (error) {
      done();
      if (error.name !== "AbortError") fill(place, wrong(error, () => { fill(place); open(); }));
    }
  };
  const box = h("details", { class: "why-hit", ontoggle: open }, h("summary", {}, "Why"), place);
  return box;
}

function agreement(shown, k) {
  const [own, ...others] = shown.map((system) => new Set(system.hits.map((hit) => hit.id)));
  return others.map((other, place) => `${plural([...own].filter((id) => other.has(id)).length, "document")} of the first ${k} by concepts are also among the first ${k} by ${shown[place + 1].kind === "words" ? "words" : "dense vectors"}.`).join(" ");
}

function drawLines(board, lines, columns) {
  const frame = board.getBoundingClientRect();
  lines.setAttribute("viewBox", `0 0 ${frame.width} ${board.scrollHeight}`);
  lines.setAttribute("width", frame.width);
  lines.setAttribute("height", board.scrollHeight);
  const parts = [];
  for (let place = 0; place + 1 < columns.length; place += 1) {
    const right = new Map([...columns[place + 1].querySelectorAll("li[data-id]")].map((one) => [one.dataset.id, one.getBoundingClientRect()]));
    for (const one of columns[place].querySelectorAll("li[data-id]")) {
      const from = one.getBoundingClientRect();
      const to = right.get(one.dataset.id);
      if (!to || to.left < from.right) continue;
      const [x1, y1] = [from.right - frame.left, from.top + from.height / 2 - frame.top];
      const [x2, y2] = [to.left - frame.left, to.top + to.height / 2 - frame.top];
      const bend = (x2 - x1) / 2;
      parts.push(svg("path", { d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, "data-id": one.dataset.id }));
    }
  }
  fill(lines, parts);
}
