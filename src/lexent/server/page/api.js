// The API: JSON in and out, problems as errors, a key where the server wants one.

const KEY = "lexent-key";

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || `the server answered ${status}`);
    this.status = status;
    this.title = body.title || "Something went wrong";
    this.kind = (body.type || "").split(":").pop();
  }
}

export function setKey(key) {
  sessionStorage.setItem(KEY, key);
}

export async function ask(method, path, { body, signal } = {}) {
  const headers = {};
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let reply;
  try {
    reply = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "The server does not answer", detail: "Is it still running? Start it again with lexent serve, then try again.", type: "x:away" });
  }
  const found = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Problem(reply.status, found);
  return found;
}

export const get = (path, options) => ask("GET", path, options);
export const post = (path, body, options) => ask("POST", path, { body, ...options });

export function at(index, rest = "") {
  return `/v1/indexes/${encodeURIComponent(index)}${rest}`;
}

export function query(values) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined && value !== null && value !== "") params.set(name, value);
  return params.toString();
}

// Answers that are asked for again and again while one steers: the last few are kept.
const kept = new Map();

export async function remembered(path, body, options) {
  const key = path + JSON.stringify(body);
  if (kept.has(key)) return kept.get(key);
  const found = await post(path, body, options);
  kept.set(key, found);
  if (kept.size > 60) kept.delete(kept.keys().next().value);
  return found;
}

export function forget() {
  kept.clear();
}
