// The page: which screen is shown, and what all of them share.

import * as address from "./address.js";
import { forget, get } from "./api.js";
import { addDialog } from "./adding.js";
import { fill, h, say, whole } from "./dom.js";
import { empty, waiting, wrong } from "./states.js";
import * as compare from "./compare.js";
import * as concept from "./concept.js";
import * as documentScreen from "./document.js";
import * as lexicon from "./lexicon.js";
import * as search from "./search.js";

const screens = { search, compare, concept, document: documentScreen, lexicon };
const main = document.getElementById("main");
const THEME = "lexent-theme";

const site = {
  indexes: [],
  writable: false,
  state: address.read(),
  index: "",
  link: (values) => address.write({ index: site.index, ...address.kept(site.state), ...values }, site.indexes.length > 1),
  go(values) {
    history.pushState(null, "", site.link(values));
    show();
    window.scrollTo(0, 0);
  },
  replace(values) {
    site.state = { ...site.state, ...values };
    history.replaceState(null, "", site.link(site.state));
    relink(Object.entries(values).filter(([name]) => address.KEPT.includes(name)));
  },
  facts: () => site.indexes.find((one) => one.name === site.index),
  async reload() {
    const found = await get("/v1/indexes");
    Object.assign(site, { indexes: found.indexes, writable: found.writable, fallback: found.default, maxQuery: found.max_query });
    forget();
    foot();
  },
};

async function start() {
  theme();
  const done = waiting(main, undefined, "The server is loading its models. This page opens by itself when it is ready.");
  try {
    if (!(await get("/health")).ready) {
      done();
      fill(main, empty("Starting", "The server is loading its models. This page opens by itself when it is ready."));
      setTimeout(start, 700);
      return;
    }
    await site.reload();
  } catch (error) {
    done();
    fill(main, wrong(error, start));
    return;
  }
  done();
  window.addEventListener("popstate", show);
  document.addEventListener("click", follow);
  document.addEventListener("keydown", keys);
  show();
}

// Links that were drawn before something that is kept changed.
function relink(changed) {
  if (!changed.length) return;
  for (const link of document.querySelectorAll("a[href^='/']:not(.brand)")) {
    const to = new URL(link.href);
    if (address.isScreen(to)) link.href = address.write({ ...address.read(to), ...Object.fromEntries(changed) }, site.indexes.length > 1);
  }
}

let current = null;

function show() {
  site.state = address.read();
  const known = site.indexes.some((one) => one.name === site.state.index);
  site.index = known ? site.state.index : site.fallback;
  head();
  foot();
  current?.abort();
  current = new AbortController();
  const name = site.state.screen;
  document.title = name === "search" && site.state.q ? `${site.state.q} · Lexent` : `${name[0].toUpperCase()}${name.slice(1)} · Lexent`;
  main.dataset.screen = name;
  screens[name].show(main, site, current.signal);
}

function head() {
  const { screen, q } = site.state;
  fill(document.getElementById("screens"), [["search", "Search"], ["compare", "Compare"], ["lexicon", "Lexicon"]].map(([name, words]) =>
    h("a", { href: site.link({ screen: name }), "aria-current": screen === name && "page" }, words)));
  document.querySelector(".brand").href = site.link({ screen: "search", ...address.NOTHING_KEPT });
  const several = site.indexes.length > 1 && h("select", { "aria-label": "Index", onchange: (event) => { site.index = event.target.value; site.go({ ...address.NOTHING_KEPT, screen: screen === "lexicon" ? "lexicon" : "search", q }); } },
    site.indexes.map((one) => h("option", { value: one.name, selected: one.name === site.index }, `${one.name} (${whole(one.documents)})`)));
  const add = site.writable && h("button", { class: "button", type: "button", id: "add", onclick: () => addDialog(site) }, "Add");
  fill(document.getElementById("tools"), several, add, themeButton());
}

function foot() {
  const facts = site.facts() || site.indexes[0];
  if (!facts) return;
  fill(document.getElementById("foot"), `${facts.name}: ${whole(facts.documents)} documents, ${whole(facts.concepts)} concepts, recipe ${facts.recipe.name}. `,
    h("a", { href: "/openapi.json" }, "API"), ". Keys: / search, s sliders, ? help.");
}

function follow(event) {
  const link = event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const to = new URL(link.href, window.location.href);
  if (to.origin !== window.location.origin || !address.isScreen(to) || to.hash) return;
  event.preventDefault();
  history.pushState(null, "", to.pathname + to.search);
  show();
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

const HELP = "/ goes to the search box, s to the sliders. Tab goes from card to card, the left and right arrows from part to part of a bar, Enter opens a part to its concepts. On a slider, arrows change it and Home turns off what it stands for.";

function keys(event) {
  if (event.target.matches("input:not([type=range]), textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    const field = main.querySelector("input[type=search]");
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  }
  if (event.key === "s") {
    const slider = main.querySelector(".panel input[type=range]");
    if (slider) { event.preventDefault(); slider.closest(".panel").open = true; slider.focus(); }
  }
  if (event.key === "?") {
    const box = h("dialog", { "aria-label": "Keys", onclose: () => box.remove() }, h("h2", {}, "Keys"), h("p", {}, HELP),
      h("form", { method: "dialog" }, h("button", { class: "button main" }, "Close")));
    document.body.append(box);
    box.showModal();
  }
}

function theme() {
  const chosen = localStorage.getItem(THEME);
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
}

function themeButton() {
  const dark = () => (localStorage.getItem(THEME) || (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const button = h("button", { class: "button plain", type: "button", id: "theme", "aria-label": dark() ? "Use light colours" : "Use dark colours", onclick: () => {
    localStorage.setItem(THEME, dark() ? "light" : "dark");
    theme();
    say(dark() ? "Dark colours" : "Light colours");
    button.replaceWith(themeButton());
    document.getElementById("theme").focus();
  } }, dark() ? "☀" : "☾");
  return button;
}

start();
