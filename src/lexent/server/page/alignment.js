// A score token by token: each token of the query, the document's token that is most like it, and what the two share.

import { fill, h, number, short, svg } from "./dom.js";

const NAMES = { "[CLS]": "start", "[SEP]": "end" };
const shown = (piece) => (NAMES[piece.token] ? `‹${NAMES[piece.token]}›` : piece.token.replace(/^##/, "·"));

// tokens: as a hit's "alignment" has them. The values sum to the score.
export function alignment(tokens, { link }) {
  const most = Math.max(...tokens.map((token) => Math.abs(token.value)), 1e-9);
  const found = new Map();
  for (const token of tokens) if (token.document) found.set(`${token.document.start}-${token.document.token}`, token.document);
  const ends = [...found.entries()].sort(([, one], [, other]) => one.start - other.start);
  const about = h("p", { class: "soft small align-about" });
  const rest = "Each token of the query, and the token of the document that it found. Choose one to see what the two share.";
  about.textContent = rest;
  const lines = svg("svg", { class: "align-lines", "aria-hidden": "true" });
  const focus = (chosen) => {
    fill(about, chosen === null ? rest : tell(tokens[chosen], link));
    for (const path of lines.children) path.classList.toggle("on", Number(path.dataset.row) === chosen);
    box.classList.toggle("chosen", chosen !== null);
  };
  const above = tokens.map((token, row) => h("button", {
    type: "button", class: `align-token${token.document ? "" : " alone"}`, style: { "--share": (Math.abs(token.value) / most).toFixed(3) },
    "aria-label": token.document ? `${token.query.token} found ${token.document.token}, which adds ${number(token.value)}` : `${token.query.token} found nothing`,
    onmouseenter: () => focus(row), onmouseleave: () => focus(null), onfocus: () => focus(row), onblur: () => focus(null),
  }, shown(token.query), h("span", { class: "number" }, number(token.value))));
  const below = ends.map(([, piece]) => h("span", { class: "align-token", title: piece.word }, shown(piece)));
  const box = h("div", { class: "align-box" },
    h("div", { class: "align-row", role: "group", "aria-label": "Tokens of the query" }, above),
    h("div", { class: "align-row low", "aria-hidden": "true" }, below), lines);
  const draw = () => {
    const frame = box.getBoundingClientRect();
    if (!frame.width) return;
    lines.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
    fill(lines, tokens.map((token, row) => {
      if (!token.document) return null;
      const place = ends.findIndex(([key]) => key === `${token.document.start}-${token.document.token}`);
      const [from, to] = [above[row].getBoundingClientRect(), below[place].getBoundingClientRect()];
      const [x1, y1, x2, y2] = [from.left + from.width / 2 - frame.left, from.bottom - frame.top, to.left + to.width / 2 - frame.left, to.top - frame.top];
      const bend = (y2 - y1) / 2;
      return svg("path", { d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`, "data-row": row, "stroke-width": (1 + (4 * Math.abs(token.value)) / most).toFixed(1) });
    }));
  };
  new ResizeObserver(draw).observe(box);
  return h("div", { class: "align" }, box, about);
}

function tell(token, link) {
  if (!token.document) return [h("b", {}, shown(token.query)), " found no token that shares a concept with it."];
  const parts = token.concepts.slice(0, 4);
  const rest = token.value - parts.reduce((sum, part) => sum + part.value, 0);
  return [h("b", {}, shown(token.query)), " found ", h("b", {}, shown(token.document)), ` and adds ${number(token.value)}: `,
    parts.map((part, place) => [place ? ", " : "", h("a", { href: link(part.concept), title: part.label }, short(part.label, 3)), ` ${number(part.value)}`]), rest > 0.005 ? `, others ${number(rest)}` : ""];
}
