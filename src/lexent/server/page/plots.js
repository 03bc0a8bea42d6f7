// Two small plots, drawn by hand.

import { percent, svg, whole } from "./dom.js";

const text = (x, y, words, anchor = "middle") => svg("text", { x, y, "text-anchor": anchor, class: "tick" }, words);

// How strongly documents have a concept: counts by weight.
export function histogram({ edges, counts }) {
  const [width, height, left, bottom, top] = [420, 150, 8, 22, 16];
  const most = Math.max(...counts, 1);
  const step = (width - 2 * left) / Math.max(counts.length, 1);
  const tall = (count) => (count ? Math.max(2, ((height - bottom - top) * Math.sqrt(count)) / Math.sqrt(most)) : 0);
  const bars = counts.map((count, place) => svg("rect", { x: left + place * step, width: Math.max(1, step - 2), y: height - bottom - tall(count), height: tall(count), rx: 1.5, class: "column" },
    svg("title", {}, `${whole(count)} documents with a weight of ${edges[place].toFixed(2)} to ${edges[place + 1].toFixed(2)}`)));
  const last = edges[edges.length - 1] || 0;
  const words = `Weights from 0 to ${last.toFixed(2)}; the fullest bar has ${whole(most)} documents`;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words, class: "plot" }, bars,
    svg("line", { x1: left, x2: width - left, y1: height - bottom, y2: height - bottom, class: "axis" }),
    text(left, height - 6, "0", "start"), text(width / 2, height - 6, "weight in a document"), text(width - left, height - 6, last.toFixed(2), "end"),
    text(left, 11, `${whole(most)} at most, heights by square root`, "start"));
}

// How many documents have the commonest concept, the second one and so on, both axes logarithmic.
export function ranks({ ranks: places, documents }, total) {
  const [width, height, left, bottom, top, right] = [640, 300, 56, 40, 14, 14];
  const far = Math.log10(Math.max(places[places.length - 1] || 1, 10));
  const high = Math.log10(Math.max(documents[0] || 1, 10));
  const x = (rank) => left + ((width - left - right) * Math.log10(rank)) / far;
  const y = (count) => height - bottom - ((height - bottom - top) * Math.log10(Math.max(count, 1))) / high;
  const path = places.map((rank, place) => `${place ? "L" : "M"}${x(rank).toFixed(1)} ${y(documents[place]).toFixed(1)}`).join("");
  const parts = [];
  for (let power = 0; power <= far; power += 1) {
    parts.push(svg("line", { x1: x(10 ** power), x2: x(10 ** power), y1: top, y2: height - bottom, class: "grid" }), text(x(10 ** power), height - bottom + 16, whole(10 ** power)));
  }
  for (let power = 0; power <= high; power += 1) {
    parts.push(svg("line", { x1: left, x2: width - right, y1: y(10 ** power), y2: y(10 ** power), class: "grid" }), text(left - 6, y(10 ** power) + 4, whole(10 ** power), "end"));
  }
  const half = places.findIndex((_, place) => documents[place] * 2 < documents[0]);
  const words = `The commonest concept is in ${whole(documents[0])} of ${whole(total)} documents; rank ${whole(places[half] || 1)} is in fewer than half as many`;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words, class: "plot" }, parts,
    svg("path", { d: path, class: "curve" }),
    places.filter((_, place) => place % 8 === 0).map((rank, place) => svg("circle", { cx: x(rank), cy: y(documents[place * 8]), r: 3, class: "spot" },
      svg("title", {}, `rank ${whole(rank)}: ${whole(documents[place * 8])} documents, ${percent(documents[place * 8] / total)}`))),
    text((left + width - right) / 2, height - 5, "rank of the concept"), svg("text", { x: 12, y: (height - bottom) / 2, transform: `rotate(-90 12 ${(height - bottom) / 2})`, "text-anchor": "middle", class: "tick" }, "documents that have it"));
}

// Bars to both sides of a middle line.
export function gap(value, most) {
  const share = (50 * Math.abs(value)) / (most || 1);
  const x = value >= 0 ? 50 : 50 - share;
  return svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "gap", "aria-hidden": "true" },
    svg("rect", { x, y: 1, width: Math.max(share, 0.5), height: 8, class: value >= 0 ? "more" : "less" }), svg("line", { x1: 50, x2: 50, y1: 0, y2: 10, class: "axis" }));
}
