// Everything that can be seen is in the address, so that a link shows the same.

export const SCREENS = ["search", "compare", "concept", "document", "lexicon"];

export function isScreen(location) {
  const name = location.pathname.split("/")[1];
  return !name || SCREENS.includes(name);
}

export function read(location = window.location) {
  const params = new URLSearchParams(location.search);
  const name = location.pathname.split("/")[1] || "search";
  return {
    screen: SCREENS.includes(name) ? name : "search",
    index: params.get("index") || "",
    q: params.get("q") || "",
    steer: steerOf(params.get("steer") || ""),
    k: Math.min(100, Math.max(1, Number.parseInt(params.get("k"), 10) || 10)),
    filter: params.get("filter") || "",
    id: params.get("id") || "",
    find: params.get("find") || "",
    category: params.get("category") || "",
    sort: params.get("sort") || "",
    page: Math.max(1, Number.parseInt(params.get("page"), 10) || 1),
  };
}

export function write(state, several) {
  const params = new URLSearchParams();
  const put = (name, value) => value && params.set(name, value);
  if (several) put("index", state.index);
  put("id", state.id);
  put("q", state.q);
  put("steer", [...(state.steer || [])].map(([id, factor]) => `${id}:${round(factor)}`).join(","));
  if (state.k && state.k !== 10) put("k", state.k);
  put("filter", state.filter);
  put("find", state.find);
  put("category", state.category);
  put("sort", state.sort);
  if (state.page > 1) put("page", state.page);
  const text = params.toString().replaceAll("%3A", ":").replaceAll("%2C", ",");
  return `/${state.screen}${text ? `?${text}` : ""}`;
}

// What holds on every screen: the query, how it is steered, the number of hits and the filter.
export const KEPT = ["q", "steer", "k", "filter"];
export const NOTHING_KEPT = { q: "", steer: new Map(), k: 10, filter: "" };

export const kept = (state) => Object.fromEntries(KEPT.map((name) => [name, state[name]]));

function steerOf(text) {
  const steer = new Map();
  for (const part of text.split(",")) {
    const [id, factor] = part.split(":");
    const value = Number.parseFloat(factor);
    if (/^\d+$/.test(id) && Number.isFinite(value) && value >= 0) steer.set(Number(id), Math.min(value, 1000));
  }
  return steer;
}

export function round(factor) {
  return Math.round(factor * 1000) / 1000;
}

// What a request has of what is kept, but for the query.
export function weighing({ steer, filter }) {
  const body = steer.size ? { steer: steerBody(steer) } : {};
  if (!filter) return body;
  try {
    return { ...body, filter: JSON.parse(filter) };
  } catch {
    throw Object.assign(new Error(`The filter is no JSON: ${filter}. Write it as {"year": {"gte": 2019}}.`), { title: "The filter cannot be read" });
  }
}

export function steerBody(steer) {
  return Object.fromEntries([...steer].map(([id, factor]) => [`#${id}`, round(factor)]));
}
