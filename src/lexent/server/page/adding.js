// A dialog that adds one document.

import { at, post } from "./api.js";
import { h, say } from "./dom.js";
import { wrong } from "./states.js";

export function addDialog(site) {
  const trouble = h("div");
  const field = (name, props = {}, tag = "input") => h(tag, { class: "field", name, ...props });
  const id = field("id", { required: true, maxlength: 1000 });
  const title = field("title");
  const text = field("text", { required: true }, "textarea");
  const replace = h("input", { type: "checkbox", name: "upsert" });
  const button = h("button", { class: "button main", type: "submit" }, "Add");
  const add = async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const documents = [{ id: id.value, title: title.value, text: text.value }];
      await post(at(site.index, "/documents"), { documents, upsert: replace.checked });
      await site.reload();
      box.close();
      say(`Added ${id.value}`);
      site.go({ screen: "document", id: id.value });
    } catch (error) {
      trouble.replaceChildren(wrong(error));
    }
    button.disabled = false;
  };
  const box = h("dialog", { "aria-labelledby": "adding", onclose: () => box.remove() },
    h("form", { onsubmit: add },
      h("h2", { id: "adding" }, `Add a document to ${site.index}`),
      h("label", {}, "Id", id), h("label", {}, "Title", title), h("label", {}, "Text", text),
      h("label", { class: "row" }, h("span", {}, replace, " replace the document that has this id")),
      trouble,
      h("div", { class: "row" }, button, h("button", { class: "button", type: "button", onclick: () => box.close() }, "Cancel"))));
  document.body.append(box);
  box.showModal();
}
