// Saves a view as PNG, SVG or CSV.

import { say } from "./api.js";
import { el, replace } from "./dom.js";

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity",
  "font-size", "font-family", "font-weight", "text-anchor", "dominant-baseline"];

function save(content, file) {
  const link = el("a", { href: URL.createObjectURL(content), download: file });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  say(`Saved ${file}.`);
}

// A cell that a spreadsheet would read as a formula gets an apostrophe in front.
function cell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) && !/^[+-]?\d+(\.\d+)?$/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

export function csv(rows) {
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

// A copy that does not need the style sheet of the page.
export function standalone(picture) {
  const box = picture.getBoundingClientRect();
  const copy = picture.cloneNode(true);
  const from = picture.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((node, i) => {
    const style = getComputedStyle(from[i]);
    for (const property of STYLES) node.setAttribute(property, style.getPropertyValue(property));
    for (const attribute of ["class", "tabindex", "role", "style"]) node.removeAttribute(attribute);
  });
  const width = picture.viewBox.baseVal.width || box.width;
  const height = picture.viewBox.baseVal.height || box.height;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.removeAttribute("class");
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("x", picture.viewBox.baseVal.x);
  ground.setAttribute("y", picture.viewBox.baseVal.y);
  ground.setAttribute("width", width);
  ground.setAttribute("height", height);
  ground.setAttribute("fill", getComputedStyle(document.documentElement).getPropertyValue("--surface"));
  copy.prepend(ground);
  // Control characters, which XML does not allow, are replaced.
  const text = new XMLSerializer().serializeToString(copy).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
  return { text, width, height };
}

async function toPng(picture) {
  const { text, width, height } = standalone(picture);
  const image = new Image();
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    image.src = address;
    await image.decode();
    const canvas = el("canvas", {});
    const scale = 2;
    canvas.width = Math.min(8000, width * scale);
    canvas.height = Math.min(8000, height * scale);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

// Adds the three buttons of a panel. Each function returns what it saves, or null if there is nothing.
export function addExport(panel, { picture, rows, file }) {
  const place = document.querySelector(`.export[data-panel="${panel}"]`);
  const attempt = (kind, make) => el("button", {
    type: "button", class: "small", "aria-label": `Save ${panel} as ${kind}`,
    onclick: async () => {
      try {
        const content = await make();
        if (content) save(content, `${file()}.${kind.toLowerCase()}`);
        else say("There is nothing to save yet.");
      } catch (error) {
        say(`Cannot save: ${error.message}`, true);
      }
    },
  }, kind);
  const isCanvas = (found) => found instanceof HTMLCanvasElement;
  replace(place,
    attempt("PNG", () => {
      const found = picture("png");
      if (!found) return null;
      return isCanvas(found) ? new Promise((resolve) => found.toBlob(resolve, "image/png")) : toPng(found);
    }),
    attempt("SVG", () => {
      const found = picture("svg");
      return found ? new Blob([standalone(found).text], { type: "image/svg+xml" }) : null;
    }),
    attempt("CSV", () => {
      const found = rows();
      return found ? new Blob([csv(found)], { type: "text/csv" }) : null;
    }));
}
