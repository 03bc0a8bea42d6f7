// Search: hits with what their scores are made of, sliders that change it, and the ranking that moves.

import { steerBody, weighing } from "./address.js";
import { alignment } from "./alignment.js";
import { at, get, post, query, remembered } from "./api.js";
import { bar, legend } from "./bar.js";
import { facets } from "./facets.js";
import { fill, h, number, plural, say, short, Text, whole } from "./dom.js";
import { Groups, hasAny, noteAdded } from "./groups.js";
import { keptNote } from "./kept.js";
import { glide, places } from "./motion.js";
import { Palette } from "./palette.js";
import { marked, snippet, where } from "./passage.js";
import { lines, pairs } from "./reasons.js";
import { bones, empty, tooLong, waiting, wrong } from "./states.js";
import { Steering } from "./steering.js";

const PARTS = 40; // contributions a hit that are asked for; weaker ones come summed
const FIRST_COLOURS = 8; // two more are left for what steering brings up
const AT_ONCE = 50; // hits whose words are asked for together
const OTHERS = "others"; // the line of a hit that sums those which are not shown
const LEAST_MARK = 0.2; // words with less of the strongest one's weight are not marked,
const LEAST_IN_FOCUS = 0.05; // or with less than this where they are those of a group in focus

export function show(root, site, signal) {
  const screen = new Search(root, site, signal);
  screen.draw();
}

class Search {
  constructor(root, site, signal) {
    Object.assign(this, { root, site, signal, palette: new Palette(), groups: new Groups(), active: null, words: null, opened: new Map(), aligned: new Set(), turn: 0 });
    this.state = site.state;
    this.steering = new Steering({
      steer: () => this.state.steer, palette: this.palette, link: this.link, index: site.index,
      focus: (key, concepts) => this.focus(key, concepts),
      changed: (steer) => { this.state = { ...this.state, steer }; this.site.replace({ steer }); this.soon(); },
    });
  }

  link = (concept) => this.site.link({ screen: "concept", id: String(concept) });

  draw() {
    const { q, k } = this.state;
    const field = h("input", { type: "search", name: "q", value: q, "aria-label": "Search", placeholder: "Ask in plain words", autocomplete: "off", spellcheck: "false" });
    const most = h("input", { class: "field", type: "number", name: "k", min: 1, max: 100, value: k, "aria-label": "How many hits" });
    const filters = facets(this.site, this.signal, { filter: () => this.state.filter, changed: (changed) => {
      this.state = { ...this.state, filter: changed };
      this.site.replace({ filter: changed });
      if (q) this.soon();
    } });
    const submit = (event) => {
      event.preventDefault();
      const trouble = tooLong(field.value.trim(), this.site.maxQuery);
      fill(this.trouble, trouble);
      if (trouble) return;
      this.site.go({ screen: "search", q: field.value.trim(), k: Number(most.value) || 10, filter: this.state.filter, steer: this.state.steer });
    };
    this.trouble = h("div");
    this.echo = h("p", { class: "echo", "aria-label": "The query, with the words that raised its concepts" });
    this.list = h("ol", { class: "hits", "aria-label": "Hits" });
    this.found = h("p", { class: "found soft", id: "found" });
    this.away = h("div", { class: "away" });
    this.hits = h("section", { "aria-labelledby": "found" }, this.away, this.found, this.list);
    const form = h("form", { class: "ask", role: "search", onsubmit: submit },
      h("div", { class: "ask-box" }, field, h("button", { class: "button main", type: "submit" }, "Search")), this.trouble,
      h("div", { class: "options row" }, filters, h("label", {}, "Hits ", most)));
    if (!q) {
      fill(this.root, h("div", { class: "landing" }, h("h1", {}, "Search by meaning. See why. Steer."), form, keptNote(this.site, this.signal), this.welcome()));
      field.focus({ preventScroll: true });
      return;
    }
    const narrow = window.matchMedia("(max-width: 900px)").matches;
    const panel = h("details", { class: "panel card", open: !narrow }, h("summary", {}, h("h2", {}, "Steer"), this.steering.count), this.steering.side);
    const old = [...this.root.querySelectorAll(".hits > .hit")]; // of the query before: they stay until there are others
    fill(this.root, h("h1", { class: "unseen" }, `Hits for ${q}`), form, this.echo, h("div", { class: "columns" }, this.hits, h("aside", { "aria-label": "Steering" }, panel)));
    if (tooLong(q, this.site.maxQuery)) { fill(this.trouble, tooLong(q, this.site.maxQuery)); return; }
    fill(this.list, old);
    this.run(true);
  }

  // --- asking ---------------------------------------------------------------------------------------------------

  body() {
    const { q, k, filter } = this.state;
    return { ...weighing({ steer: new Map(), filter }), query: q, k, contributions: PARTS };
  }

  async run(first = false) {
    const turn = (this.turn += 1);
    const stale = first && this.list.querySelector(".hit");
    const done = stale ? () => this.list.removeAttribute("aria-busy") : first ? waiting(this.list, bones(4)) : () => {};
    if (stale) this.list.setAttribute("aria-busy", "true");
    try {
      const body = this.body();
      const path = at(this.site.index, "/search");
      const plain = await remembered(path, body, { signal: this.signal });
      const steer = steerBody(this.state.steer);
      const steered = this.state.steer.size ? await post(path, { ...body, steer }, { signal: this.signal }) : plain;
      if (turn !== this.turn) return false;
      done();
      fill(this.away);
      Object.assign(this, { plain, steered, groups: new Groups(plain, steered) });
      this.steering.take(plain, this.groups, steered.steered);
      noteAdded(steered.hits, this.steering.extra);
      const always = [...this.state.steer.keys()].map((concept) => this.groups.of(concept)).filter((group) => group && !group.form).map((group) => group.key);
      this.palette.take(this.groups, plain.hits, { always, most: FIRST_COLOURS });
      if (steered !== plain) this.palette.take(this.groups, steered.hits);
      this.drawHits();
      if (first || !this.steering.rows.length) this.steering.draw(); // without hits there are no groups
      else this.steering.update();
      this.fetchWords(turn);
      return true;
    } catch (error) {
      done();
      if (error.name === "AbortError" || turn !== this.turn) return false;
      const left = this.list.querySelector(".hit");
      if (!left) fill(this.list);
      fill(this.away, wrong(error, () => this.run(first)), left && h("p", { class: "soft small" }, "The hits below are those of the last answer."));
      say(error.message);
      return false;
    }
  }

  async fetchWords(turn) {
    const ids = this.steered.hits.map((hit) => hit.id);
    const body = { query: this.state.q, steer: steerBody(this.state.steer) };
    const found = { query: [], documents: new Map() };
    try {
      for (let start = 0; start < ids.length; start += AT_ONCE) {
        const reply = await remembered(at(this.site.index, "/words"), { ...body, documents: ids.slice(start, start + AT_ONCE) }, { signal: this.signal });
        if (turn !== this.turn) return;
        for (const one of reply.documents) found.documents.set(one.id, one);
        this.words = Object.assign(found, { query: reply.query, whole: !reply.documents.length });
        this.drawWords();
        this.drawReasons();
      }
    } catch (error) {
      if (error.name === "AbortError" || turn !== this.turn) return;
      this.words = { ...found, failed: true }; // hits without marks are still hits
      this.drawReasons();
    }
  }

  // One question at a time; while it is asked, only the newest wish is kept.
  async soon() {
    if (this.asking) { this.again = true; return; }
    this.asking = true;
    this.list.setAttribute("aria-busy", "true");
    let answered = true;
    do { this.again = false; answered = await this.run(); } while (this.again);
    this.asking = false;
    this.list.removeAttribute("aria-busy");
    if (answered) this.tell();
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
      fill(this.list, empty("Nothing shares a concept with this", this.state.filter ? "No document that the filter lets through does. Change a facet above." : "Try other words, or turn a concept up again."));
      return;
    }
    const stood = places(this.list);
    const cards = new Map([...this.list.children].map((card) => [card.dataset.key, card]));
    const open = document.activeElement?.closest?.("[data-key]")?.dataset.key;
    const place = document.activeElement?.classList.contains("piece") ? document.activeElement.dataset.group : undefined;
    fill(this.list, hits.map((hit) => this.card(hit, cards.get(hit.id), { highest, steered, before: before.get(hit.id) })));
    glide(this.list, stood);
    if (open && place !== undefined) this.list.querySelector(`[data-key="${CSS.escape(open)}"] .piece[data-group="${CSS.escape(place)}"]`)?.focus();
    this.drawWords();
  }

  card(hit, old, { highest, steered, before }) {
    const tools = { groups: this.groups, palette: this.palette, focus: (key) => this.focus(key), open: (key) => this.open(card, key ?? OTHERS) };
    const card = old || h("li", { class: "hit card", "data-key": hit.id });
    card.hit = hit;
    const move = steered ? movement(hit.rank, before) : null;
    const title = h("a", { class: "title", href: this.site.link({ screen: "document", id: hit.id }) }, hit.title || hit.id);
    fill(card,
      h("div", { class: "hit-head" }, h("span", { class: "rank number" }, hit.rank), move, h("h2", {}, title), strength(hit), h("span", { class: "score number", title: "score" }, number(hit.score))),
      h("div", { class: "track" }, bar(hit, highest, tools)),
      legend(hit, tools),
      where(hit),
      h("p", { class: "passage" }, snippet(hit, [])),
      this.why(card),
      hit.alignment && this.tokens(hit));
    return card;
  }

  // --- why ------------------------------------------------------------------------------------------------------

  // The lines of a hit with their concepts, and its pairs of words; drawn when it is opened.
  why(card) {
    const { hit } = card;
    const open = this.opened.get(hit.id);
    const box = h("details", { class: "why-hit", open: Boolean(open), ontoggle: () => {
      if (box.open === this.opened.has(hit.id)) return;
      if (box.open) this.opened.set(hit.id, new Set());
      else this.opened.delete(hit.id);
      this.drawWhy(card);
    } }, h("summary", {}, "Why"), h("div", { class: "reasons" }));
    card.why = box;
    this.drawWhy(card);
    return box;
  }

  drawWhy(card) {
    const { hit, why } = card;
    const open = this.opened.get(hit.id);
    const toggled = () => {
      for (const piece of card.querySelectorAll(".piece")) piece.setAttribute("aria-expanded", String(Boolean(open?.has(piece.dataset.group ? Number(piece.dataset.group) : OTHERS))));
    };
    if (!open) { fill(why.lastChild); toggled(); return; }
    const kind = (line) => this.palette.of(this.groups.key(line.concepts[0]));
    const own = this.words?.documents.get(hit.id)?.words;
    const none = this.words?.whole ? "This recipe reads a text as one: its score has no words." : this.words?.failed ? "The words could not be found." : "Finding the words …";
    fill(why.lastChild,
      h("section", {}, h("h3", {}, "By meaning"), lines(hit, { link: this.link, key: (line) => this.groups.key(line.concepts[0]), kind, open, toggled, focus: (key) => this.focus(key) })),
      h("section", {}, h("h3", {}, "By words of the query"), own ? pairs(own) : h("p", { class: "soft small" }, none)));
    toggled();
  }

  drawReasons() {
    for (const card of this.list.querySelectorAll(".hit")) if (this.opened.has(card.hit.id)) this.drawWhy(card);
  }

  // Opens or closes a line of a hit, and the hit with it.
  open(card, key) {
    const open = this.opened.get(card.hit.id) || new Set();
    if (!open.delete(key)) open.add(key);
    this.opened.set(card.hit.id, open);
    card.why.open = true;
    this.drawWhy(card);
  }

  // Drawn when it is opened: lines need to know where their ends stand.
  tokens(hit) {
    const place = h("div");
    const draw = () => { if (box.open && !place.firstChild) fill(place, alignment(hit.alignment, { link: this.link })); };
    const box = h("details", { class: "aligned", open: hit.rank === 1 || this.aligned.has(hit.id), ontoggle: () => { draw(); this.aligned[box.open ? "add" : "delete"](hit.id); } }, h("summary", {}, "Token by token"), place);
    draw();
    return box;
  }

  tell() {
    const moved = this.steered.hits.filter((hit) => this.plain.hits.find((one) => one.id === hit.id)?.rank !== hit.rank).length;
    const top = this.steered.hits[0];
    say(top ? `${moved ? `${plural(moved, "hit")} moved` : "The ranking stays as it was"}. First: ${top.title || top.id}.` : "No hits.");
  }

  // --- words ----------------------------------------------------------------------------------------------------

  // The words of a text that raised what is in focus, or what has a colour. weight: what a concept gave, by its number.
  marksOf(concepts, weight) {
    const found = new Map();
    for (const one of concepts || []) {
      const key = this.groups.key(one.concept);
      const chosen = this.active === null ? this.palette.has(key) : this.active.concepts.has(one.concept);
      if (!chosen || !one.pooled) continue;
      for (const token of one.tokens) {
        const place = `${token.start} ${token.stop} ${key}`;
        const known = found.get(place) || { start: token.start, stop: token.stop, group: key, kind: this.palette.of(key), weight: 0 };
        known.weight += (weight(one.concept) * token.share) / one.pooled;
        found.set(place, known);
      }
    }
    return [...found.values()];
  }

  marks(hit) {
    const values = new Map(hit.contributions.map((part) => [part.concept, part.value]));
    const found = this.marksOf(this.words?.documents.get(hit.id)?.concepts, (concept) => values.get(concept) || 0);
    // A concept in focus shows all of its words, each as strongly as it raised it; else only the strongest are marked.
    const most = Math.max(...found.map((mark) => mark.weight), 1e-9);
    const several = this.active === null || this.active.concepts.size > 1;
    const strong = several ? found.filter((mark) => mark.weight >= (this.active === null ? LEAST_MARK : LEAST_IN_FOCUS) * most) : found;
    return this.active === null ? strong : strong.map((mark) => ({ ...mark, strength: 0.08 + 0.32 * Math.min(1, mark.weight / most) }));
  }

  drawWords() {
    for (const card of this.list.querySelectorAll(".hit")) this.mark(card);
    const query = this.words?.query || [];
    const weights = new Map(this.steered.concepts.map((concept) => [concept.id, concept.weight]));
    const found = this.marksOf(query, (concept) => weights.get(concept) || 0).filter((mark) => mark.weight > 0.1 || this.active !== null);
    const text = new Text(this.state.q);
    const { read } = this.plain;
    fill(this.echo, h("span", { class: "soft" }, "read as "), marked(text, found, { stop: read }),
      read < text.length && [" ", h("span", { class: "soft" }, "(not read, as the encoder takes no more: "), h("s", { class: "soft" }, text.slice(read, text.length).trim()), h("span", { class: "soft" }, ")")], !query.length && this.words && h("span", { class: "soft" }, " (one vector for the whole text: no single word stands for a concept)"));
  }

  mark(card) {
    const { hit } = card;
    const marks = this.marks(hit);
    fill(card.querySelector(".title"), hit.title ? marked(hit.title, marks, { from: hit.title.trimStart().length - hit.title.length }) : hit.id);
    // A passage that shows the words of what is in focus goes back to its own when nothing is.
    fill(card.querySelector(".passage"), snippet(hit, marks));
    card.classList.toggle("without", this.active !== null && !hasAny(hit, this.active.concepts));
  }

  // key: of a group; concepts: those in focus, all of the group if not given. null: nothing is in focus.
  focus(key, concepts) {
    clearTimeout(this.leaving);
    if (key === null && this.active === null) return;
    const change = () => {
      this.active = key === null ? null : { key, concepts: concepts ?? new Set(this.groups.of(key)?.concepts ?? [key]) };
      for (const one of this.root.querySelectorAll(".piece, .name, .slide, .line")) {
        const own = one.dataset.concept ? this.active?.concepts.has(Number(one.dataset.concept)) : one.dataset.group === String(key);
        one.classList.toggle("dim", key !== null && !own);
      }
      this.drawWords();
    };
    if (key === null) this.leaving = setTimeout(change, 60);
    else change();
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

function strength(hit) {
  return h("span", { class: "strength soft small number", title: "Means the same for every query: 0 is what words thrown together get, 1 what a passage of the document would" },
    h("span", { class: "on-wide" }, "strength "), number(hit.strength));
}

function movement(rank, before) {
  if (before === undefined) return h("span", { class: "move new", "aria-label": "new among the hits" }, "new");
  if (before === rank) return h("span", { class: "move same", "aria-label": "same rank as before" }, "=");
  const up = before > rank;
  return h("span", { class: `move ${up ? "up" : "down"}`, "aria-label": `${up ? "up" : "down"} ${Math.abs(before - rank)}, was ${before}` }, `${up ? "▲" : "▼"}${Math.abs(before - rank)}`);
}
