// Elements without HTML strings: text is always text, whatever it holds.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function say(text) {
  document.getElementById("live").textContent = text;
}

export const whole = (value) => value.toLocaleString("en");

export function number(value, digits = 2) {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function percent(share) {
  const value = share * 100;
  return `${value >= 10 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value >= 0.01 || value === 0 ? value.toFixed(2) : "< 0.01"} %`;
}

// The first words of a label: "statins · stat1 · meta-analysis" is too long for a bar.
export function short(label, words = 2) {
  const parts = label.split(" · ");
  return parts.length > words ? parts.slice(0, words).join(" · ") : label;
}

// A concept as a link to its page; a word of the documents, which has none, in quotation marks.
export function named(one, href, text) {
  return one.word ? h("span", { title: "a word of the documents" }, `“${text}”`) : h("a", { href, title: one.id ?? one.concept ? `${one.label} #${one.id ?? one.concept}` : one.label }, text);
}

export function plural(count, one, many = `${one}s`) {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

// Offsets from the server count characters, JavaScript counts UTF-16 units: they differ beyond the basic plane.
export class Text {
  constructor(text) {
    this.units = /[\ud800-\udfff]/.test(text) ? Array.from(text) : text;
    this.length = this.units.length;
  }
  slice(start, stop) {
    const part = this.units.slice(start, stop);
    return typeof part === "string" ? part : part.join("");
  }
}
