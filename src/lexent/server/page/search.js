// Search: hits with what their scores are made of, sliders that change it, and the ranking that moves.

import { steerBody } from "./address.js";
import { alignment } from "./alignment.js";
import { at, get, post, query, remembered } from "./api.js";
import { bar, legend } from "./bar.js";
import { fill, h, number, plural, say, short, whole } from "./dom.js";
import { glide, places } from "./motion.js";
import { Palette } from "./palette.js";
import { marked, snippet } from "./passage.js";
import { picker } from "./picker.js";
import { factorOf, slider, stepOf } from "./slider.js";
import { bones, empty, waiting, wrong } from "./states.js";

const SLIDERS = 10;
const SHOWN = 24; // contributions a hit that are asked for; the rest comes summed

export function show(root, site, signal) {
  const screen = new Search(root, site, signal);
  screen.draw();
}

class Search {
  constructor(root, site, signal) {
    Object.assign(this, { root, site, signal, palette: new Palette(), active: null, words: null, extra: new Map(), opened: new Set(), all: false, turn: 0 });
    this.state = site.state;
  }

  link = (concept) => this.site.link({ screen: "concept", id: String(concept), q: this.state.q });

  draw() {
    const { q, k, filter } = this.state;
    const field = h("input", { type: "search", name: "q", value: q, "aria-label": "Search", placeholder: "Ask in plain words", autocomplete: "off", spellcheck: "false" });
    const most = h("input", { class: "field", type: "number", name: "k", min: 1, max: 100, value: k, "aria-label": "How many hits" });
    const only = h("input", { class: "field", type: "text", name: "filter", value: filter, placeholder: '{"year": {"gte": 2019}}', "aria-label": "Filter on metadata, as JSON", spellcheck: "false" });
    const submit = (event) => {
      event.preventDefault();
      const same = field.value.trim() === this.state.q;
      this.site.go({ screen: "search", q: field.value.trim(), k: Number(most.value) || 10, filter: only.value.trim(), steer: same ? this.state.steer : new Map() });
    };
    this.echo = h("p", { class: "echo", "aria-label": "The query, with the words that raised its concepts" });
    this.list = h("ol", { class: "hits", "aria-label": "Hits" });
    this.side = h("div", { class: "steering" });
    this.found = h("p", { class: "found soft", id: "found" });
    this.hits = h("section", { "aria-labelledby": "found" }, this.found, this.list);
    const form = h("form", { class: "ask", role: "search", onsubmit: submit },
      h("div", { class: "ask-box" }, field, h("button", { class: "button main", type: "submit" }, "Search")),
      h("details", { class: "options", open: Boolean(filter) || k !== 10 }, h("summary", {}, "Options"),
        h("div", { class: "row" }, h("label", {}, "Hits ", most), h("label", { class: "wide" }, "Only documents where ", only))));
    if (!q) {
      fill(this.root, h("div", { class: "landing" }, h("h1", {}, "Search by meaning. See why. Steer."), form, this.welcome()));
      field.focus({ preventScroll: true });
      return;
    }
    const narrow = window.matchMedia("(max-width: 900px)").matches;
    this.changed = h("span", { class: "tag" });
    const panel = h("details", { class: "panel card", open: !narrow }, h("summary", {}, h("h2", {}, "Steer"), this.changed), this.side);
    fill(this.root, h("h1", { class: "unseen" }, `Hits for ${q}`), form, this.echo, h("div", { class: "columns" }, this.hits, h("aside", { "aria-label": "Steering" }, panel)));
    this.run(true);
  }

  // --- asking ---------------------------------------------------------------------------------------------------

  body() {
    const { q, k, filter } = this.state;
    const body = { query: q, k, contributions: SHOWN };
    if (filter) {
      try { body.filter = JSON.parse(filter); } catch { throw Object.assign(new Error(`The filter is no JSON: ${filter}. Write it as {"year": {"gte": 2019}}.`), { title: "The filter cannot be read" }); }
    }
    return body;
  }

  async run(first = false) {
    const turn = (this.turn += 1);
    const done = first ? waiting(this.list, bones(4)) : () => {};
    try {
      const body = this.body();
      const path = at(this.site.index, "/search");
      const plain = await remembered(path, body, { signal: this.signal });
      const steer = steerBody(this.state.steer);
      const steered = this.state.steer.size ? await post(path, { ...body, steer }, { signal: this.signal }) : plain;
      if (turn !== this.turn) return;
      done();
      Object.assign(this, { plain, steered });
      if (first) await this.fetchNames();
      this.palette.take(plain.hits, { always: [...this.state.steer.keys()], asked: plain.concepts.map((concept) => concept.id), most: 8 });
      if (steered !== plain) this.palette.take(steered.hits); // two colours are left for what steering brings up
      this.drawHits();
      if (first) this.drawSide();
      this.fetchWords(turn);
    } catch (error) {
      done();
      if (error.name === "AbortError" || turn !== this.turn) return;
      fill(this.list);
      fill(this.found, wrong(error, () => this.run(true)));
      say(error.message);
    }
  }

  // Concepts that were added come with a number in the address; their names are asked for.
  async fetchNames() {
    const own = new Map(this.plain.concepts.map((concept) => [concept.id, concept]));
    for (const id of this.state.steer.keys()) {
      if (own.has(id) || this.extra.has(id)) continue;
      const found = await get(at(this.site.index, `/concepts/${id}?limit=1`), { signal: this.signal });
      this.extra.set(id, { id, label: found.label });
    }
  }

  async fetchWords(turn) {
    const ids = this.steered.hits.map((hit) => hit.id).slice(0, 50);
    if (!ids.length) return;
    try {
      const found = await remembered(at(this.site.index, "/words"), { query: this.state.q, documents: ids, steer: steerBody(this.state.steer) }, { signal: this.signal });
      if (turn !== this.turn) return;
      this.words = { query: found.query, documents: new Map(found.documents.map((one) => [one.id, one.concepts])) };
      this.drawWords();
    } catch (error) {
      if (error.name !== "AbortError") this.words = null; // hits without marks are still hits
    }
  }

  steer(concept, factor) {
    const steer = new Map(this.state.steer);
    if (stepOf(factor) === 0 && !this.extra.has(concept)) steer.delete(concept);
    else steer.set(concept, factor);
    this.state = { ...this.state, steer };
    this.site.replace({ steer });
    this.soon();
  }

  // One question at a time; while it is asked, only the newest wish is kept.
  async soon() {
    if (this.asking) { this.again = true; return; }
    this.asking = true;
    this.list.setAttribute("aria-busy", "true");
    do { this.again = false; await this.run(); } while (this.again);
    this.asking = false;
    this.list.removeAttribute("aria-busy");
    this.reset.disabled = this.state.steer.size === 0;
    this.count();
    this.tell();
  }

  count() {
    this.changed.textContent = this.state.steer.size ? `${this.state.steer.size} changed` : "";
    this.changed.hidden = this.state.steer.size === 0;
  }

  // --- hits -----------------------------------------------------------------------------------------------------

  drawHits() {
    const { hits } = this.steered;
    const before = new Map(this.plain.hits.map((hit) => [hit.id, hit.rank]));
    const steered = this.state.steer.size > 0;
    const highest = Math.max(...hits.map((hit) => hit.score), 0);
    const facts = this.site.facts();
    fill(this.found, hits.length ? `${plural(hits.length, "hit")} of ${whole(facts.documents)} documents in ${number(this.steered.took_ms, 1)} ms${this.steered.approximate ? ", approximate: this recipe scores candidates only" : ""}` : "");
    if (!hits.length) {
      fill(this.list, empty("Nothing shares a concept with this", this.state.filter ? "No document that the filter lets through does. Try without the filter." : "Try other words, or turn a concept up again."));
      return;
    }
    const stood = places(this.list);
    const cards = new Map([...this.list.children].map((card) => [card.dataset.key, card]));
    const open = document.activeElement?.closest?.("[data-key]")?.dataset.key;
    const place = document.activeElement?.dataset?.concept;
    fill(this.list, hits.map((hit) => this.card(hit, cards.get(hit.id), { highest, steered, before: before.get(hit.id) })));
    glide(this.list, stood);
    if (open && place) this.list.querySelector(`[data-key="${CSS.escape(open)}"] a[data-concept="${CSS.escape(place)}"]`)?.focus();
    this.drawWords();
  }

  card(hit, old, { highest, steered, before }) {
    const focus = (concept) => this.focus(concept);
    const tools = { focus, link: this.link };
    const card = old || h("li", { class: "hit card", "data-key": hit.id });
    card.hit = hit;
    const move = steered ? movement(hit.rank, before) : null;
    const title = h("a", { class: "title", href: this.site.link({ screen: "document", id: hit.id, q: this.state.q }) }, hit.title || hit.id);
    fill(card,
      h("div", { class: "hit-head" }, h("span", { class: "rank number" }, hit.rank), move, h("h2", {}, title), h("span", { class: "score number", title: "score" }, number(hit.score))),
      h("div", { class: "track" }, bar(hit, highest, this.palette, tools)),
      h("div", { class: "legend-place" }, legend(hit, this.palette, null, tools)),
      h("p", { class: "passage" }, snippet(hit, [])),
      hit.alignment && this.aligned(hit));
    return card;
  }

  // Drawn when it is opened: lines need to know where their ends stand.
  aligned(hit) {
    const place = h("div");
    const draw = () => { if (box.open && !place.firstChild) fill(place, alignment(hit.alignment, { link: this.link })); };
    const box = h("details", { class: "aligned", open: hit.rank === 1 || this.opened.has(hit.id), ontoggle: () => { draw(); this.opened[box.open ? "add" : "delete"](hit.id); } }, h("summary", {}, "Token by token"), place);
    draw();
    return box;
  }

  tell() {
    const moved = this.steered.hits.filter((hit) => this.plain.hits.find((one) => one.id === hit.id)?.rank !== hit.rank).length;
    const top = this.steered.hits[0];
    say(top ? `${moved ? `${plural(moved, "hit")} moved` : "The ranking stays as it was"}. First: ${top.title || top.id}.` : "No hits.");
  }

  // --- words ----------------------------------------------------------------------------------------------------

  marks(hit) {
    const concepts = this.words?.documents.get(hit.id) || [];
    const values = new Map(hit.contributions.map((part) => [part.concept, part.value]));
    const found = [];
    for (const one of concepts) {
      const chosen = this.active === null ? this.palette.has(one.concept) : one.concept === this.active;
      if (!chosen) continue;
      const value = values.get(one.concept) || 0;
      for (const token of one.tokens) {
        const weight = one.pooled ? (value * token.share) / one.pooled : 0;
        found.push({ start: token.start, stop: token.stop, concept: one.concept, kind: this.palette.of(one.concept), weight });
      }
    }
    // A concept in focus shows all of its words, each as strongly as it raised it; else only the strongest are marked.
    const most = Math.max(...found.map((mark) => mark.weight), 1e-9);
    if (this.active === null) return found.filter((mark) => mark.weight >= 0.33 * most);
    return found.map((mark) => ({ ...mark, strength: 0.08 + 0.32 * Math.min(1, mark.weight / most) }));
  }

  drawWords() {
    for (const card of this.list.querySelectorAll(".hit")) this.mark(card);
    const query = this.words?.query || [];
    const weights = new Map(this.steered.concepts.map((concept) => [concept.id, concept.weight]));
    const found = [];
    for (const one of query) {
      const chosen = this.active === null ? this.palette.has(one.concept) : one.concept === this.active;
      const weight = (token) => ((weights.get(one.concept) || 0) * token.share) / (one.pooled || 1);
      if (chosen) for (const token of one.tokens) if (weight(token) > 0.1 || this.active !== null) found.push({ start: token.start, stop: token.stop, concept: one.concept, kind: this.palette.of(one.concept), weight: weight(token) });
    }
    fill(this.echo, h("span", { class: "soft" }, "read as "), marked(this.state.q, found), !query.length && this.words && h("span", { class: "soft" }, " (one vector for the whole text: no single word stands for a concept)"));
  }

  mark(card) {
    const { hit } = card;
    const marks = this.marks(hit);
    fill(card.querySelector(".title"), hit.title ? marked(hit.title, marks, { from: hit.title.trimStart().length - hit.title.length }) : hit.id);
    // A passage that shows a concept's words when it is in focus goes back to its own when it is not.
    fill(card.querySelector(".passage"), snippet(hit, marks));
    // A name that the pointer is on stays where it is.
    if (!card.querySelector(".name:hover")) fill(card.querySelector(".legend-place"), legend(hit, this.palette, this.active, { focus: (concept) => this.focus(concept), link: this.link }));
    card.classList.toggle("without", this.active !== null && !hit.contributions.some((part) => part.concept === this.active));
  }

  focus(concept) {
    if (concept === this.active) return;
    clearTimeout(this.leaving);
    const change = () => {
      this.active = concept;
      for (const piece of this.root.querySelectorAll(".piece, .slide")) piece.classList.toggle("dim", concept !== null && piece.dataset.concept !== String(concept));
      this.drawWords();
    };
    if (concept === null) this.leaving = setTimeout(change, 60);
    else change();
  }

  // --- steering -------------------------------------------------------------------------------------------------

  drawSide() {
    const own = this.plain.concepts;
    const listed = new Set(own.map((concept) => concept.id));
    const added = [...this.state.steer.keys()].filter((id) => !listed.has(id)).map((id) => this.extra.get(id)).filter(Boolean);
    const moved = own.filter((concept) => this.state.steer.has(concept.id));
    const shown = this.all ? own : [...new Set([...own.slice(0, SLIDERS), ...moved])];
    const tools = { change: (id, factor) => this.steer(id, factor), focus: (id) => this.focus(id), link: this.link };
    const remove = (id) => { this.extra.delete(id); const steer = new Map(this.state.steer); steer.delete(id); this.state = { ...this.state, steer }; this.site.replace({ steer }); this.drawSide(); this.soon(); };
    const row = (concept, more = {}) => slider(concept, this.state.steer.get(concept.id) ?? 1, this.palette, { ...tools, ...more });
    this.reset = h("button", { class: "button plain small", type: "button", disabled: this.state.steer.size === 0, onclick: () => { this.extra.clear(); this.state = { ...this.state, steer: new Map() }; this.site.replace({ steer: new Map() }); this.drawSide(); this.soon(); } }, "Reset");
    const choose = (concept) => {
      if (!listed.has(concept.id)) this.extra.set(concept.id, { id: concept.id, label: concept.label });
      this.palette.take([], { always: [concept.id] });
      this.steer(concept.id, factorOf(4));
      this.drawSide();
      this.side.querySelector(`input[data-concept="${concept.id}"]`)?.focus();
    };
    const rest = own.length - shown.length;
    this.count();
    fill(this.side,
      h("p", { class: "soft small" }, "Each concept of the query: left turns it down and off, right up to four times. Hits move as you drag."),
      added.length > 0 && h("ul", { class: "slides", "aria-label": "Added concepts" }, added.map((concept) => row(concept, { remove }))),
      h("ul", { class: "slides", "aria-label": "Concepts of the query" }, shown.map((concept) => row(concept))),
      h("div", { class: "row" }, rest > 0 && h("button", { class: "button plain small", type: "button", onclick: () => { this.all = true; this.drawSide(); } }, `Show ${rest} more`), this.reset),
      picker(this.site.index, { label: "Add a concept by name", placeholder: "Add a concept by name", choose }),
      h("p", { class: "soft small" }, "The address holds all of this: copy it to share what you see."));
  }

  welcome() {
    const box = h("div", { class: "welcome" });
    get(at(this.site.index, `/concepts?${query({ category: "narrow", limit: 18, live: true, page: this.site.facts().concepts > 5000 ? 12 : 1 })}`), { signal: this.signal }).then(async (found) => {
      const shown = found.concepts.length ? found : await get(at(this.site.index, `/concepts?${query({ limit: 18, live: true })}`), { signal: this.signal });
      fill(box, h("h2", { class: "soft" }, "Some of what this index can tell apart"), h("ul", { class: "chips" }, shown.concepts.map((one) =>
        h("li", {}, h("a", { class: "tag", href: this.site.link({ screen: "concept", id: String(one.id) }) }, short(one.label, 3))))));
    }).catch((error) => error.name !== "AbortError" && fill(box, wrong(error)));
    return box;
  }
}

function movement(rank, before) {
  if (before === undefined) return h("span", { class: "move new", "aria-label": "new among the hits" }, "new");
  if (before === rank) return h("span", { class: "move same", "aria-label": "same rank as before" }, "=");
  const up = before > rank;
  return h("span", { class: `move ${up ? "up" : "down"}`, "aria-label": `${up ? "up" : "down"} ${Math.abs(before - rank)}, was ${before}` }, `${up ? "▲" : "▼"}${Math.abs(before - rank)}`);
}
