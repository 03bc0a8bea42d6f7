// A document: its concepts, its words with theirs, and why it is not ranked higher for a query.

import { alignment } from "./alignment.js";
import { weighing } from "./address.js";
import { at, get, post, query } from "./api.js";
import { fill, h, named, number, plural, say, short, Text, whole } from "./dom.js";
import { keptNote } from "./kept.js";
import { offset } from "./passage.js";
import { gap } from "./plots.js";
import { lines, pairs } from "./reasons.js";
import { bones, empty, tooLong, waiting, wrong } from "./states.js";

const SHOWN = 20;

export async function show(root, site, signal) {
  const { id } = site.state;
  if (!id) { fill(root, empty("Which document?", "Search, and choose one of the hits.")); return; }
  const done = waiting(root, [bones(1, "low"), bones(3)], "Still working. The document is encoded again to find the words.");
  try {
    const plain = await get(at(site.index, `/documents?${query({ id })}`), { signal });
    done();
    draw(root, site, plain, signal);
  } catch (error) {
    done();
    if (error.name !== "AbortError") fill(root, wrong(error, () => show(root, site, signal)));
  }
}

function draw(root, site, document_, signal) {
  document.title = `${document_.title || document_.id} · Lexent`;
  const metadata = Object.entries(document_.metadata);
  const text = h("div", { class: "reading" }, h("p", {}, document_.text));
  const about = h("p", { class: "soft small about", "aria-live": "polite" }, "Finding the words …");
  const concepts = h("section", { class: "card pad" });
  const why = h("section", { class: "card pad why", "aria-label": "Why is it not ranked higher?" });
  fill(root, keptNote(site, signal), h("div", { class: "row" }, h("h1", {}, document_.title || document_.id), document_.title && h("span", { class: "tag" }, document_.id)),
    metadata.length > 0 && h("dl", { class: "facts" }, metadata.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, typeof value === "string" ? value : JSON.stringify(value))))),
    why, h("div", { class: "reading-columns" }, h("section", { class: "card pad" }, h("h2", {}, "Text"), about, text), concepts));
  const page = { site, document: document_, text, about, signal, words: null };
  drawConcepts(concepts, page, false);
  drawWhy(why, page);
  fetchWords(page);
}

// --- words and concepts -------------------------------------------------------------------------------------------

async function fetchWords(page) {
  const { site, document: document_, about, signal } = page;
  try {
    const found = await get(at(site.index, `/documents?${query({ id: document_.id, tokens: "true" })}`), { signal });
    if (!found.tokens.length) { fill(about, "This recipe reads a text as one: no single word stands for a concept."); return; }
    page.words = found.tokens;
    about.textContent = "Choose a word to see its concepts, or a concept to see its words. Arrows go from word to word.";
    drawText(page, null);
  } catch (error) {
    if (error.name !== "AbortError") fill(about, `The words could not be found: ${error.message}`);
  }
}

function drawText(page, concept) {
  const { document: document_, text, words } = page;
  if (!words) return;
  const content = document_.title ? `${document_.title} ${document_.text}`.trim() : document_.text;
  const whole_ = new Text(content);
  const most = Math.max(...words.flatMap((word) => word.concepts.map((one) => one.value)), 1e-9);
  const heading = document_.title ? h("span", { class: "heading" }) : null;
  const body = [];
  const start = offset(document_.title);
  let parts = heading ? [] : body;
  let place = 0;
  const turn = () => { if (parts === body) return; fill(heading, parts, whole_.slice(place, start)); parts = body; place = Math.max(place, start); };
  words.forEach((word, number_) => {
    if (word.start < place) return;
    if (word.start >= start) turn();
    parts.push(whole_.slice(place, word.start));
    const own = concept === null ? null : word.concepts.find((one) => one.id === concept);
    parts.push(h("span", { class: `word${own ? " on" : ""}`, tabindex: number_ ? "-1" : "0", role: "button", "aria-label": `${word.token}: ${word.concepts.map((one) => short(one.label)).join(", ")}`,
      style: own ? { "--mark": (0.12 + 0.28 * Math.min(1, own.value / most)).toFixed(2) } : {},
      onmousemove: () => tell(page, word), onfocus: () => tell(page, word), onclick: () => tell(page, word) }, whole_.slice(word.start, word.stop)));
    place = word.stop;
  });
  turn();
  parts.push(whole_.slice(place, whole_.length));
  const arrows = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !event.target.matches(".word")) return;
    event.preventDefault();
    const all = [...text.querySelectorAll(".word")];
    const next = all[(all.indexOf(event.target) + step + all.length) % all.length];
    for (const one of all) one.tabIndex = one === next ? 0 : -1;
    next.focus();
  };
  fill(text, h("p", { onkeydown: arrows }, heading, body));
  const read = words.length ? words[words.length - 1].stop : 0;
  if (read < whole_.length - 40) text.append(h("p", { class: "soft small" }, "No words are marked in what follows: they are found for the beginning of a long document."));
}

function tell(page, word) {
  if (page.told === word) return;
  page.told = word;
  fill(page.about, h("b", {}, word.token), " raised ", word.concepts.map((one, place) => [place ? ", " : "", h("a", { href: page.site.link({ screen: "concept", id: String(one.id) }) }, short(one.label, 3)), ` ${number(one.value)}`]));
}

function drawConcepts(place, page, all) {
  const { document: document_, site } = page;
  const shown = all ? document_.concepts : document_.concepts.slice(0, SHOWN);
  const most = document_.concepts[0]?.weight || 1;
  let chosen = null;
  const choose = (event, id) => {
    chosen = chosen === id ? null : id;
    for (const one of place.querySelectorAll("button[aria-pressed]")) one.setAttribute("aria-pressed", String(one === event.currentTarget && chosen !== null));
    drawText(page, chosen);
  };
  fill(place, h("h2", {}, `${plural(document_.concepts.length, "concept")}`), h("p", { class: "soft small" }, "With their stored weights; press one to see its words."),
    h("ul", { class: "weights" }, shown.map((one) => h("li", {},
      h("button", { class: "weight-row", type: "button", "aria-pressed": "false", onclick: (event) => choose(event, one.id), title: one.label },
        h("span", { class: "weight-bar", style: { width: `${(100 * one.weight) / most}%` } }), h("span", { class: "weight-name" }, short(one.label, 3)), h("span", { class: "number soft" }, number(one.weight))),
      !one.word && h("a", { class: "small", href: site.link({ screen: "concept", id: String(one.id) }), "aria-label": `About ${one.label}` }, "›")))),
    document_.concepts.length > shown.length && h("button", { class: "button plain small", type: "button", onclick: () => drawConcepts(place, page, true) }, `Show all ${whole(document_.concepts.length)}`));
}

// --- why not higher? ----------------------------------------------------------------------------------------------

function drawWhy(place, page) {
  const { site } = page;
  const field = h("input", { class: "field", type: "search", name: "why", value: site.state.q, placeholder: "a query", "aria-label": "Query to explain the rank for", required: true });
  const result = h("div", { class: "stack" });
  const submit = (event) => {
    event.preventDefault();
    const trouble = tooLong(field.value.trim(), site.maxQuery);
    if (trouble) { fill(result, trouble); return; }
    site.replace({ q: field.value.trim() });
    explain(result, page, field.value.trim());
  };
  fill(place, h("form", { class: "row", onsubmit: submit }, h("h2", {}, "Why is it not ranked higher for"), field, h("button", { class: "button", type: "submit" }, "Explain")), result);
  if (site.state.q) explain(result, page, site.state.q);
}

async function explain(place, page, q) {
  const { site, document: document_, signal } = page;
  const done = waiting(place, bones(2, "low"));
  try {
    const found = await post(at(site.index, "/explain"), { ...weighing(site.state), query: q, document: document_.id, tokens: 0 }, { signal });
    done();
    drawReason(place, site, found);
  } catch (error) {
    done();
    if (error.name !== "AbortError") fill(place, wrong(error, () => explain(place, page, q)));
  }
}

function drawReason(place, site, found) {
  const link = (id) => site.link({ screen: "concept", id: String(id) });
  const rank = found.rank === null ? (found.score ? "It is not found: the filter leaves it out." : "It is not found: it shares no concept with the query.")
    : found.rank === 1 ? `It is the first of ${whole(found.found)} documents, with a score of ${number(found.score)} and a strength of ${number(found.strength)}.`
      : `It is number ${whole(found.rank)} of ${whole(found.found)} that share a concept, with a score of ${number(found.score)} and a strength of ${number(found.strength)}.`;
  const rows = (list, value) => h("ul", { class: "near" }, list.map((one) => h("li", {}, named(one, link(one.concept ?? one.id), short(one.label, 3)), h("span", { class: "soft number" }, value(one)))));
  const others = [found.above, found.best].filter((one, number_, all) => one && all.findIndex((other) => other && other.id === one.id) === number_);
  fill(place, h("p", { class: "verdict" }, rank),
    found.alignment && h("div", {}, h("h3", {}, "Token by token"), alignment(found.alignment, { link })),
    others.map((other) => versus(site, other)),
    h("div", { class: "halves" },
      h("div", {}, h("h3", {}, "What its score is made of"), found.groups.length ? lines(found, { link }) : h("p", { class: "soft" }, "nothing")),
      found.words?.length > 0 && h("div", {}, h("h3", {}, "By words of the query"), pairs(found.words)),
      h("div", {}, h("h3", {}, "Concepts of the query that it lacks"), found.missing.length ? rows(found.missing.slice(0, 8), (one) => `weighs ${number(one.weight)}`) : h("p", { class: "soft" }, "none"))));
  say(rank);
}

function versus(site, other) {
  const most = Math.max(...other.differences.map((one) => Math.abs(one.value)), 1e-9);
  // The strongest, those that add to the other's score first.
  const shown = other.differences.slice(0, 7).sort((one, two) => (two.value > 0) - (one.value > 0));
  const rest = other.gap - shown.reduce((sum, one) => sum + one.value, 0);
  return h("div", { class: "versus" }, h("h3", {}, `Number ${whole(other.rank)}, `, h("a", { href: site.link({ screen: "document", id: other.id }) }, other.title || other.id), `, scores ${number(other.gap)} more, because`),
    h("table", { class: "differences" }, h("thead", { class: "unseen" }, h("tr", {}, h("th", { scope: "col" }, "Concept"), h("th", { scope: "col" }, "Chart"), h("th", { scope: "col" }, "Difference"))),
      h("tbody", {}, shown.map((one) => h("tr", {}, h("th", { scope: "row" }, named(one, site.link({ screen: "concept", id: String(one.concept) }), short(one.label, 3))), h("td", { class: "chart" }, gap(one.value, most)), h("td", { class: "number" }, signed(one.value)))),
      Math.abs(rest) > 0.005 && h("tr", {}, h("th", { scope: "row", class: "soft" }, `${whole(other.differences.length - shown.length)} others`), h("td", {}), h("td", { class: "number soft" }, signed(rest))))));
}

const signed = (value) => `${value >= 0 ? "+" : "−"}${number(Math.abs(value))}`;
