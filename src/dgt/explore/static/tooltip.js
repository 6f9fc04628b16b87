// The box that follows the pointer and describes a node.

import { get } from "./api.js";
import { byId, el, name, number, percent, replace } from "./dom.js";

let shown = 0;
const known = new Map();

function place(x, y) {
  const box = byId("tooltip");
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  box.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
}

function table(rows) {
  return el("table", {}, rows.filter(Boolean).map(([key, value]) => el("tr", {}, el("th", {}, key), el("td", {}, value))));
}

export function className(run, c) {
  return c < 0 || c === null || c === undefined ? "none" : run.classes[c] ?? "?";
}

// Shows a node at once, and its columns as soon as they have arrived.
export async function showNode(event, run, runIndex, node, facts, more = []) {
  const mine = ++shown;
  const { clientX: x, clientY: y } = event;
  const key = `${runIndex}/${node}`;
  const draw = (about) => {
    if (mine !== shown) return;
    const columns = about?.columns?.shown ?? [];
    replace(byId("tooltip"),
      el("strong", {}, "Node ", name(about?.id ?? "…", 60)),
      about && table([
        ["label", name(className(run, about.label))],
        ["prediction", el("span", {}, name(className(run, about.prediction)), ` ${percent(about.probability)}`)],
        ["degree", number(about.degree)],
        ...more,
      ]),
      columns.length > 0 && el("p", { class: "muted" }, "columns"),
      columns.length > 0 && table(columns.map((each) => [name(each.name, 24), number(each.value)])),
      about?.columns && about.columns.total > columns.length && el("p", { class: "muted" }, `and ${number(about.columns.total - columns.length)} more columns`));
    place(x, y);
  };
  draw(known.get(key) ?? facts);
  if (known.has(key)) return;
  await new Promise((resolve) => setTimeout(resolve, 60));
  if (mine !== shown) return;
  try {
    const about = await get("brief", { run: runIndex, node });
    known.set(key, about);
    draw(about);
  } catch { /* the facts at hand stay */ }
}

export function showText(event, ...lines) {
  shown += 1;
  replace(byId("tooltip"), lines.map((line) => el("div", {}, line)));
  place(event.clientX, event.clientY);
}

export function hide() {
  shown += 1;
  byId("tooltip").hidden = true;
}
