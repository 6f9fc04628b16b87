// Compares the node with another node, or with the same node in another run.

import { get, say } from "./api.js";
import { byId, el, name, number, percent, replace, select } from "./dom.js";
import { factChips, probabilityBars } from "./facts.js";
import { drawRibbons } from "./ribbons.js";
import { change, state } from "./state.js";
import { className } from "./tooltip.js";

let rows = null;
export const comparedRows = () => rows;
export const comparedPicture = () => byId("compare-view").querySelector("svg.ribbons");

export function drawTools(runs, about) {
  const withRun = state.withRun ?? state.run;
  const input = el("input", { name: "id", placeholder: "id of a node", "aria-label": "Id of the other node", autocomplete: "off", maxlength: 1000 });
  replace(byId("compare-tools"),
    el("form", { class: "line", onsubmit: async (event) => {
      event.preventDefault();
      const run = Number(event.target.elements.run?.value ?? state.run);
      const id = input.value || about?.id || "";
      try {
        say("");
        change({ withRun: run, withNode: (await get("locate", { run, id })).node });
      } catch (error) {
        say(error.message, true);
      }
    } },
    runs.length > 1 && select("run", runs.map((run, i) => [i, run.name]), withRun, () => {}, "Run"),
    input, el("button", { type: "submit" }, "Compare"),
    state.withNode !== null && el("button", { type: "button", onclick: () => change({ withRun: null, withNode: null }) }, "Close")));
}

export async function loadCompared(runs) {
  if (state.withNode === null) return null;
  const index = state.withRun ?? state.run;
  if (!runs[index]) throw new Error("the link compares with a run that is not open");
  return { index, about: await get("node", { run: index, node: state.withNode }) };
}

export function drawCompared(runs, about, view, compared, hooks) {
  rows = null;
  if (!compared) {
    replace(byId("compare-view"), el("p", { class: "muted" }, runs.length > 1
      ? "Choose a run, and a node if it is another one."
      : "Enter the id of another node. To compare runs, start dgt explore with several of them."));
    return;
  }
  const [run, other] = [runs[state.run], runs[compared.index]];
  const theirs = compared.about;
  const share = (v, id) => v.attended.find((each) => v.nodes[each.node].id === id)?.weight ?? 0;
  const ids = [...new Set([...view.attended.map((each) => view.nodes[each.node].id), ...theirs.view.attended.map((each) => theirs.view.nodes[each.node].id)])];
  const both = ids.map((id) => [id, share(view, id), share(theirs.view, id)]).sort((a, b) => b[1] + b[2] - a[1] - a[2]);
  // Two nodes of one run differ in their ids, the same node of two runs in the run.
  const heads = [[about, run], [theirs, other]].map(([{ id }, { name: runName }]) => (run === other ? `weight for ${id}` : `weight in ${runName}`));
  rows = [["node", ...heads], ...both];
  const overlap = both.reduce((sum, [, a, b]) => sum + Math.min(a, b), 0);
  const side = (runShown, facts, shares) => el("div", {},
    el("h3", {}, "Node ", name(facts.id, 24), ` in ${runShown.name}`), factChips(runShown, facts), probabilityBars(runShown, shares));
  replace(byId("compare-view"),
    el("div", { class: "pair" }, side(run, about, about.probabilities), side(other, theirs, theirs.probabilities)),
    theirs.view.ribbons.length > 0 && el("h3", {}, "Sequences of node ", name(theirs.id, 24), ` in ${other.name}`),
    theirs.view.ribbons.length > 0 && el("div", { class: "scroll" }, drawRibbons(theirs.view, {
      kernel: other.kernel, criteria: other.criteria, head: Number(state.head) < other.heads ? state.head : "all", color: state.color,
      width: byId("compare-view").clientWidth, className: (c) => className(other, c),
      on: { ...hooks(other, compared.index), move: () => say("Open this node to move its keys.") },
    })),
    both.length > 0 && el("table", { class: "attended" },
      el("caption", {}, `Attention side by side; ${percent(overlap)} is common to both.`),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "node"), heads.map((text) => el("th", { scope: "col" }, name(text, 40))))),
      el("tbody", {}, both.slice(0, 20).map(([id, a, b]) => el("tr", {}, el("td", {}, name(id, 30)), el("td", { class: "number" }, percent(a)), el("td", { class: "number" }, percent(b)))),
        both.length > 20 && el("tr", {}, el("td", { colspan: 3, class: "muted" }, `and ${number(both.length - 20)} more nodes`)))));
}
