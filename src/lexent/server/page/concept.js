// A concept: its name, how common it is, where it fires, and what is near it.

import { ask, at, get } from "./api.js";
import { fill, h, number, percent, plural, say, short, whole } from "./dom.js";
import { keptNote } from "./kept.js";
import { histogram } from "./plots.js";
import { marked } from "./passage.js";
import { turnedUp } from "./slider.js";
import { bones, waiting, wrong } from "./states.js";

const NAMERS = { "": "the words that raise it in the lexicon's text", documents: "the words that raise it in these documents", user: "you" };
const FORMER = 3; // former names that are shown
const KINDS = { lexical: "the forms of one word", narrow: "a few related words", broad: "a topic or manner spread over many words", unknown: "not sorted yet" };

export async function show(root, site, signal) {
  const path = at(site.index, `/concepts/${encodeURIComponent(site.state.id || "0")}`);
  const done = waiting(root, [bones(1, "low"), bones(3)]);
  try {
    const found = await get(`${path}?limit=10`, { signal });
    done();
    draw(root, site, found, signal, path);
  } catch (error) {
    done();
    if (error.name !== "AbortError") fill(root, wrong(error, () => show(root, site, signal)));
  }
}

function draw(root, site, concept, signal, path) {
  const { documents: all } = site.facts();
  document.title = `${short(concept.label)} · Lexent`;
  const link = (id) => site.link({ screen: "concept", id: String(id) });
  const heading = h("div");
  const examples = h("div");
  const { q, steer } = site.state;
  const search = site.link({ screen: "search", steer: new Map([...steer, [concept.id, turnedUp(steer.get(concept.id) ?? 1)]]) });
  name(heading, site, concept, (changed) => draw(root, site, changed, signal, path));
  const near = (rows, value) => h("ol", { class: "near" }, rows.map((one) => h("li", {}, h("a", { href: link(one.id), title: one.label }, short(one.label, 3)), h("span", { class: "soft number" }, value(one)))));
  fill(root, keptNote(site, signal), heading,
    h("dl", { class: "facts" },
      h("div", {}, h("dt", {}, "In this index"), h("dd", {}, `${plural(concept.documents, "document")}, ${percent(concept.documents / Math.max(1, all))}`)),
      h("div", {}, h("dt", {}, "In the texts it was named on"), h("dd", {}, concept.frequency ? percent(concept.frequency) : "not counted")),
      h("div", {}, h("dt", {}, "Kind"), h("dd", {}, h("b", {}, concept.category), `, ${KINDS[concept.category]}`)),
      h("div", {}, h("dt", {}, "Named by"), h("dd", {}, NAMERS[concept.source] ?? concept.source)),
      concept.form && h("div", {}, h("dt", {}, "Form"), h("dd", {}, concept.form, ": it says how a word is written, not what a text is about"))),
    h("p", {}, h("a", { class: "button main", href: search }, q ? "Turn it up in your search" : "Search with it")),
    h("div", { class: "halves" },
      evidence(concept),
      h("section", { class: "card pad" }, h("h2", {}, "How strongly documents have it"), concept.documents ? histogram(concept.histogram) : h("p", { class: "soft" }, "No document of this index has it.")),
      h("section", { class: "card pad" }, h("h2", {}, "Nearest in direction"), near(concept.neighbours, (one) => number(one.cosine))),
      h("section", { class: "card pad" }, h("h2", {}, "Often in the same documents"), concept.together.length ? near(concept.together, (one) => `${one.lift >= 10 ? whole(Math.round(one.lift)) : number(one.lift, 1)}× as often`) : h("p", { class: "soft" }, "Too few documents to tell.")),
      h("section", { class: "card pad" }, h("h2", {}, "Documents with most of it"), h("ol", { class: "near" }, concept.top_documents.map((one) =>
        h("li", {}, h("a", { href: site.link({ screen: "document", id: one.id }) }, one.title || one.id), h("span", { class: "soft number" }, number(one.weight))))))),
    h("section", { class: "card pad" }, h("h2", {}, "From the strongest to the weakest"), examples),
    concept.examples.length > 0 && h("section", { class: "card pad" }, h("h2", {}, "Where it was seen when it was named"), h("ul", { class: "quotes" }, concept.examples.map((one) => h("li", {}, bracketed(one))))));
  if (concept.documents) quantiles(examples, site, path, signal);
  else fill(examples, h("p", { class: "soft" }, "No document of this index has it."));
}

// The name, and a form to give it another one.
function name(heading, site, concept, changed) {
  const edit = () => {
    const field = h("input", { class: "field", name: "label", value: concept.label, maxlength: 100, "aria-label": "Your name for this concept", required: true });
    const trouble = h("div");
    const send = async (method, body) => {
      try {
        const found = await ask(method, at(site.index, `/concepts/${concept.id}/label`), { body });
        await site.reload();
        changed(found);
        say(`It is now called ${found.label}`);
      } catch (error) {
        fill(trouble, wrong(error));
      }
    };
    fill(heading, h("form", { class: "row rename", onsubmit: (event) => { event.preventDefault(); send("PUT", { label: field.value }); }, onkeydown: (event) => event.key === "Escape" && name(heading, site, concept, changed) },
      field, h("button", { class: "button main", type: "submit" }, "Save"), h("button", { class: "button", type: "button", onclick: () => name(heading, site, concept, changed) }, "Cancel"),
      concept.source === "user" && h("button", { class: "button plain", type: "button", onclick: () => send("DELETE") }, "Back to its own name")),
    h("p", { class: "soft small" }, "Your name is kept beside the index and shown to everyone who opens it. Scores do not change."), trouble);
    field.focus();
    field.select();
  };
  fill(heading, h("div", { class: "row" }, h("h1", {}, concept.label), h("span", { class: "tag" }, `#${concept.id}`),
    site.writable && h("button", { class: "button", type: "button", id: "rename", onclick: edit }, "Rename")),
  concept.plain && h("p", { class: "soft" }, `in the lexicon: ${concept.plain}`),
  concept.former.length > 0 && h("p", { class: "soft" }, `until it was named anew: ${concept.former.slice(0, FORMER).join("; ")}`));
}

// The words that raise it, here and in the lexicon's text: what its name comes from.
function evidence(concept) {
  const list = (words, value) => {
    const most = Math.max(...words.map((one) => one.share), 1e-9);
    return h("ul", { class: "evidence" }, words.map((one) => h("li", {}, h("span", { class: "weight-bar", style: { width: `${(100 * one.share) / most}%` } }), h("span", { class: "weight-name" }, one.word), h("span", { class: "number" }, value(one)))));
  };
  return h("section", { class: "card pad" }, h("h2", {}, "The words that raise it"),
    h("h3", { class: "soft" }, "In these documents"),
    concept.raised_here.length ? list(concept.raised_here, (one) => `${plural(one.count, "time")}, ${percent(one.share)}`) : h("p", { class: "soft" }, "Too few to tell."),
    concept.raised_by.length > 0 && [h("h3", { class: "soft" }, "In the lexicon's own text"), list(concept.raised_by, (one) => percent(one.share))]);
}

async function quantiles(place, site, path, signal) {
  const done = waiting(place, bones(3, "low"), "Still working. The documents are encoded again to find the words.");
  try {
    const found = await get(`${path}/examples`, { signal });
    done();
    const groups = [...new Set(found.examples.map((one) => one.quantile))];
    fill(place, groups.map((group) => h("div", { class: "quantile" }, h("h3", { class: "soft" }, group),
      h("ul", { class: "quotes" }, found.examples.filter((one) => one.quantile === group).map((one) => example(site, one))))));
  } catch (error) {
    done();
    if (error.name !== "AbortError") fill(place, wrong(error, () => quantiles(place, site, path, signal)));
  }
}

function example(site, one) {
  const most = Math.max(...one.tokens.map((token) => token.share), 1e-9);
  const marks = one.tokens.map((token) => ({ ...token, weight: token.share, kind: "", strength: 0.04 + 0.34 * (token.share / most) }));
  return h("li", {}, h("span", { class: "soft number weight" }, number(one.weight)), " … ", marked(one.text, marks), " … ",
    h("a", { class: "small", href: site.link({ screen: "document", id: one.id }) }, one.title ? short(one.title) : one.id));
}

function bracketed(text) {
  return text.split(/(\[[^\]]*\])/).map((part) => (part.startsWith("[") && part.endsWith("]") ? h("mark", {}, part.slice(1, -1)) : part));
}
