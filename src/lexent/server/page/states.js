// What one sees while there is nothing to see yet, or something went wrong.

import { fill, h, say, Text, whole } from "./dom.js";
import { setKey } from "./api.js";

export function bones(count = 4, kind = "") {
  return h("div", { class: "bones", "aria-hidden": "true" }, Array.from({ length: count }, () => h("div", { class: `bone ${kind}` })));
}

// Loading that says so when it takes long. Gives a function that ends it.
export function waiting(root, content = bones(), words = "Still working. The first question after a change takes longest.") {
  const note = h("p", { class: "slow" });
  fill(root, content, note);
  root.setAttribute("aria-busy", "true");
  const timer = setTimeout(() => { note.textContent = words; say(words); }, 1500);
  return () => { clearTimeout(timer); root.removeAttribute("aria-busy"); };
}

export function wrong(error, again) {
  if (error.status === 401) return keyForm(again);
  return h("div", { class: "notice wrong", role: "alert" },
    h("h2", {}, error.title || "Something went wrong"),
    h("p", {}, error.message),
    again && h("p", {}, h("button", { class: "button", type: "button", onclick: again }, "Try again")));
}

// A query that the server would refuse, said before it is sent; null where it is short enough.
export function tooLong(q, most) {
  const length = new Text(q).length;
  return length <= most ? null : wrong({ title: "The query is too long", message: `It has ${whole(length)} characters; this server takes at most ${whole(most)}. Nothing was sent: shorten it by ${whole(length - most)}.` });
}

export function empty(title, ...words) {
  return h("div", { class: "state" }, h("h2", {}, title), words.map((one) => (typeof one === "string" ? h("p", {}, one) : one)));
}

function keyForm(again) {
  const field = h("input", { class: "field", type: "password", name: "key", autocomplete: "off", "aria-label": "Key", required: true });
  const enter = (event) => { event.preventDefault(); setKey(field.value.trim()); again(); };
  return h("div", { class: "state", role: "alert" },
    h("h2", {}, "This server asks for a key"),
    h("p", {}, "It stays in this tab and is sent only to this server. Whoever started the server knows it."),
    h("form", { onsubmit: enter }, field, h("button", { class: "button main", type: "submit" }, "Open")));
}
