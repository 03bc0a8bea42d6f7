// The panel that steers: a slider for each group of the query's concepts, which opens to those of its concepts.

import { fill, h, plural } from "./dom.js";
import { FORM } from "./bar.js";
import { picker } from "./picker.js";
import { common, factorOf, slider, stepOf } from "./slider.js";

const SHOWN = 8; // groups that are shown before one asks for the others
const ADDED_STEP = 4; // where the slider of an added concept stands first: 2x

export class Steering {
  // steer: factors by concept, as they are now; changed: called with the new ones. palette, focus, link: as for hits.
  constructor({ steer, changed, palette, focus, link, index }) {
    Object.assign(this, { steer, changed, palette, focus, link, index });
    this.side = h("div", { class: "steering" });
    this.count = h("span", { class: "tag" });
    this.extra = new Map(); // concepts that were added, by number
    this.open = new Set(); // groups whose concepts are shown
    this.all = false;
    this.rows = [];
  }

  // plain: the reply without steering; groups: of that and of the steered one; steered: what the latter says it moved.
  take(plain, groups, steered) {
    this.own = new Map(plain.concepts.map((concept) => [concept.id, concept]));
    this.listed = plain.groups.map((group) => ({ ...group, key: group.concepts[0] }));
    this.groups = groups;
    for (const { id, label, word } of steered) if (!this.own.has(id)) this.extra.set(id, { id, label, word });
  }

  factor = (concept) => this.steer().get(concept) ?? 1;

  // Moves concepts; those at 1x are forgotten, but for those that were added.
  move(concepts, factor) {
    const steer = new Map(this.steer());
    for (const concept of concepts) {
      if (stepOf(factor) === 0 && !this.extra.has(concept)) steer.delete(concept);
      else steer.set(concept, factor);
    }
    this.set(steer);
  }

  set(steer) {
    this.changed(steer);
    this.update();
  }

  draw() {
    const topics = this.listed.filter((group) => !group.form);
    const shown = this.all ? topics : topics.filter((group, place) => place < SHOWN || group.concepts.some((concept) => this.steer().has(concept)));
    const added = [...this.steer().keys()].filter((id) => !this.own.has(id)).map((id) => this.extra.get(id)).filter(Boolean);
    const left = topics.length - shown.length;
    const list = (name, rows) => rows.length > 0 && h("ul", { class: "slides", "aria-label": name }, rows);
    this.rows = [];
    this.reset = h("button", { class: "button plain small", type: "button", onclick: () => { this.extra.clear(); this.set(new Map()); this.draw(); } }, "Reset");
    const choose = (concept) => {
      if (!this.own.has(concept.id)) this.extra.set(concept.id, { id: concept.id, label: concept.label });
      else this.open.add(this.groups.key(concept.id));
      this.move([concept.id], factorOf(ADDED_STEP));
      this.draw();
      this.side.querySelector(`input[data-concept="${concept.id}"]`)?.focus();
    };
    fill(this.side,
      h("p", { class: "soft small" }, "What the query is about: left turns it down and off, right up to four times. Hits move as you drag."),
      list("Added concepts", added.map((concept) => this.member(concept, () => this.remove(concept.id)))),
      list("Groups of the query's concepts", [...shown, ...this.listed.filter((group) => group.form)].map((group) => this.group(group))),
      h("div", { class: "row" }, left > 0 && h("button", { class: "button plain small", type: "button", onclick: () => { this.all = true; this.draw(); } }, `Show ${left} more`), this.reset),
      picker(this.index, { label: "Add a concept by name", placeholder: "Add a concept by name", choose }),
      h("p", { class: "soft small" }, "The address holds all of this: copy it to share what you see."));
    this.update();
  }

  remove(id) {
    this.extra.delete(id);
    const steer = new Map(this.steer());
    steer.delete(id);
    this.set(steer);
    this.draw();
  }

  update() {
    for (const row of this.rows) row();
    const changes = this.changes();
    this.count.textContent = changes ? `${changes} changed` : "";
    this.count.hidden = changes === 0;
    if (this.reset) this.reset.disabled = this.steer().size === 0;
  }

  // Groups that moved as one, and single concepts that moved.
  changes() {
    const moved = (concepts) => concepts.filter((concept) => stepOf(this.factor(concept)) !== 0).length;
    const ofGroups = this.listed.map(({ concepts }) => (common(concepts.map(this.factor)) === null ? moved(concepts) : Math.min(1, moved(concepts))));
    return [...this.steer().keys()].filter((id) => !this.groups.of(id) || this.extra.has(id)).length + ofGroups.reduce((sum, one) => sum + one, 0);
  }

  // --- rows -----------------------------------------------------------------------------------------------------

  group(group) {
    const { key, label, concepts } = group;
    const several = concepts.length > 1;
    const inner = h("ul", { class: "slides members", "aria-label": `Concepts of ${label}`, hidden: true });
    const show = (open) => {
      this.open[open ? "add" : "delete"](key);
      opener.setAttribute("aria-expanded", String(open));
      inner.hidden = !open;
      if (!open || inner.firstChild) return;
      fill(inner, concepts.map((id) => this.member(this.own.get(id) ?? { id, label: `#${id}` })));
      this.update();
    };
    const opener = several
      ? h("button", { class: "opener", type: "button", "aria-expanded": "false", title: `${plural(concepts.length, "concept")}; open to steer each`, onclick: () => show(inner.hidden) }, label)
      : this.single(this.own.get(key) ?? { id: key, label }, key);
    const head = this.row(`How much ${label} counts`, concepts, [h("span", { class: "dot" }), opener,
      several && h("span", { class: "soft small" }, ` ${concepts.length}`)], { "data-group": key });
    if (group.form) { head.classList.add("form"); head.title = FORM; }
    if (several && this.open.has(key)) show(true);
    return h("li", {}, head, several && inner);
  }

  // The name of a concept, which marks its words, and a link to its page. A tap on the name leaves no page.
  single(concept, key) {
    if (concept.word) return h("span", { title: "a word of the documents" }, `“${concept.label}”`);
    return [h("button", { class: "single", type: "button", title: `${concept.label} #${concept.id}`, onclick: () => this.focus(key, new Set([concept.id])) }, concept.label),
      h("a", { href: this.link(concept.id), "aria-label": `About ${concept.label} #${concept.id}` }, "›")];
  }

  member(concept, remove) {
    const head = this.row(`How much the concept ${concept.label} #${concept.id} counts`, [concept.id],
      [remove && h("span", { class: "dot" }), this.single(concept, this.groups.key(concept.id)), !concept.word && h("span", { class: "soft small" }, ` #${concept.id}`)], { "data-concept": concept.id });
    if (remove) head.append(h("button", { class: "button plain small", type: "button", "aria-label": `Remove ${concept.label}`, onclick: remove }, "×"));
    return h("li", {}, head);
  }

  row(label, concepts, name, data) {
    const chosen = new Set(concepts);
    const own = () => this.groups.key(concepts[0]); // an added concept has its group from the first reply on
    const focus = () => this.focus(own(), chosen);
    const { value, range, update } = slider(label, () => concepts.map(this.factor), (factor) => this.move(concepts, factor), { ...data, onfocus: focus, onblur: () => this.focus(null) });
    const row = h("div", { class: "slide", ...data, onmouseenter: focus, onmouseleave: () => this.focus(null) }, h("span", { class: "slide-name" }, name), value, range);
    let colour = this.palette.of(own());
    row.classList.add(colour);
    this.rows.push(() => {
      row.classList.toggle("moved", update());
      row.classList.replace(colour, (colour = this.palette.of(own())));
    });
    return row;
  }
}
