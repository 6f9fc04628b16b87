// The facts about a node, and the probabilities of its classes.

import { classColor } from "./colors.js";
import { el, name, number, percent } from "./dom.js";

const MOST_CLASSES = 8;

function chip(key, ...value) {
  return el("div", { class: "chip" }, el("dt", {}, key), el("dd", {}, value));
}

// Bars of the class probabilities; with `after`, a second bar below each.
export function probabilityBars(run, before, after = null) {
  const order = before.map((_, c) => c).sort((a, b) => Math.max(before[b], after?.[b] ?? 0) - Math.max(before[a], after?.[a] ?? 0));
  const bar = (c, share, kind) => {
    const inner = el("span", { class: `fill ${kind}` });
    inner.style.width = `${100 * share}%`;
    inner.style.background = classColor(c);
    return el("span", { class: "track" }, inner);
  };
  const rows = order.slice(0, MOST_CLASSES).map((c) => el("tr", { "data-class": c },
    el("th", { scope: "row" }, name(run.classes[c], 26)),
    el("td", { class: "bars" }, bar(c, before[c], "before"), after && bar(c, after[c], "after")),
    el("td", { class: "number before-value", "data-value": before[c] }, percent(before[c])),
    after && el("td", { class: "number after-value", "data-value": after[c] }, percent(after[c]))));
  const more = order.length - MOST_CLASSES;
  return el("table", { class: "probabilities" },
    el("caption", {}, after ? "Probabilities before and after the changes" : "Probabilities"),
    after && el("thead", {}, el("tr", {}, el("td", {}), el("td", {}), el("th", { scope: "col" }, "before"), el("th", { scope: "col" }, "after"))),
    el("tbody", {}, rows, more > 0 && el("tr", {}, el("td", { colspan: 3, class: "muted" }, `and ${more} more classes`))));
}

export function factChips(run, about, top = about.prediction) {
  const isWrong = about.label >= 0 && about.label !== top;
  const isRight = about.label >= 0 && about.label === top;
  return el("dl", { class: "chips" },
    chip("label", about.label < 0 ? "none" : name(run.classes[about.label], 30)),
    chip("prediction", name(run.classes[top], 30), " ", isWrong && el("span", { class: "wrong" }, "mistake"), isRight && el("span", { class: "right" }, "right")),
    chip("split", about.part ?? "none"),
    chip("degree", number(about.degree)),
    chip("same-label neighbors", about.homophily === null ? "unknown" : percent(about.homophily)));
}

export function columnTable(about, change, changed) {
  const { shown, total } = about.columns;
  if (!total) return el("p", { class: "muted" }, "All features of this node are 0.");
  return el("details", { class: "columns-table", open: shown.length <= 6 },
    el("summary", {}, `${number(total)} nonzero ${total === 1 ? "column" : "columns"}`),
    el("table", {}, el("tbody", {}, shown.map((each) => el("tr", {},
      el("th", { scope: "row" }, name(each.name, 24)),
      el("td", {}, el("input", {
        type: "number", step: "any", value: changed.get(each.column) ?? each.value, "aria-label": `Value of ${each.name.slice(0, 60)}`,
        onchange: (event) => event.target.value !== "" && change(each.column, each.name, Number(event.target.value)),
      })))))),
    total > shown.length && el("p", { class: "muted" }, `The ${shown.length} largest are shown. Change any other under What if.`));
}
