// Builds elements. Text from the data only ever becomes text nodes and attribute values.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);

export function replace(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

export function select(name, options, value, change, label) {
  const chosen = String(value);
  return el("label", {}, label, " ", el("select", { name, onchange: (event) => change(event.target.value) },
    options.map(([key, text]) => el("option", { value: String(key), selected: String(key) === chosen }, text))));
}

export const percent = (share) => {
  const value = 100 * share;
  if (value > 0 && value < 0.05) return "<0.1%";
  return `${value.toFixed(1)}%`;
};
export const number = (value) => (Number.isInteger(value) ? value.toLocaleString("en-US") : Number(value.toPrecision(4)).toString());
// By characters, so that none is cut in half.
export function trimmed(text, most = 40) {
  const characters = Array.from(text);
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
}

// Isolates the direction of an id, so that right-to-left text does not reorder what follows.
export const name = (text, most = 40) => el("bdi", { title: trimmed(text, most) === text ? null : text }, trimmed(text, most) || "(empty)");
