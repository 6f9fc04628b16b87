// Changes to try out: hide an edge, a node or a criterion, change a feature, move a key.

import { get, post, say } from "./api.js";
import { byId, el, name, number, percent, replace } from "./dom.js";
import { change, state } from "./state.js";

// Changes are kept in the link. `shown` is only for display.
const identity = {
  edge: (e) => `edge ${Math.min(e.a, e.b)} ${Math.max(e.a, e.b)}`,
  node: (e) => `node ${e.node}`,
  criterion: (e) => `criterion ${e.criterion}`,
  feature: (e) => `feature ${e.node} ${e.column}`,
  key: (e) => `key ${e.block} ${e.criterion} ${e.head} ${e.key}`,
};
const sameAs = (edit) => (other) => identity[other.kind]?.(other) === identity[edit.kind](edit);

export function add(edit) {
  change({ edits: [...state.edits.filter((other) => !sameAs(edit)(other)), edit].slice(-50) });
}

export function remove(edit) {
  change({ edits: state.edits.filter((other) => !sameAs(edit)(other)) });
}

export const hiddenNodes = () => new Set(state.edits.filter((e) => e.kind === "node").map((e) => e.node));
export const hiddenEdges = () => new Set(state.edits.filter((e) => e.kind === "edge").map((e) => `${Math.min(e.a, e.b)}-${Math.max(e.a, e.b)}`));
export const hiddenCriteria = () => new Set(state.edits.filter((e) => e.kind === "criterion").map((e) => e.criterion));

const asked = (edit) => {
  const { shown, ...rest } = edit;
  return rest;
};

export async function askWhatIf() {
  return post("what-if", {
    run: state.run, node: state.node, edits: state.edits.map(asked),
    ...(state.block === null ? {} : { block: state.block }), ...(state.epoch === null ? {} : { epoch: state.epoch }),
  });
}

async function locate(id) {
  return (await get("locate", { run: state.run, id })).node;
}

function attempt(action) {
  return async (event) => {
    event.preventDefault();
    const { run, node } = state;
    const isShown = () => state.run === run && state.node === node; // also after an answer has come
    try {
      say("");
      await action(new FormData(event.target), isShown);
    } catch (error) {
      say(error.message, true);
    }
  };
}

export function drawForm(run) {
  const hasSequences = run.attention === "sequences";
  replace(byId("what-if-form"),
    el("form", { class: "line", onsubmit: attempt(async (form, isShown) => {
      const id = form.get("id");
      const node = await locate(id);
      if (!isShown()) return;
      if (form.get("kind") === "node") add({ kind: "node", node, shown: id });
      else add({ kind: "edge", a: state.node, b: node, shown: id });
    }) },
    el("label", {}, "Hide ", el("select", { name: "kind" }, el("option", { value: "edge" }, "the edge to"), el("option", { value: "node" }, "the node"))),
    el("input", { name: "id", placeholder: "id", "aria-label": "Id of the node", required: true, autocomplete: "off", maxlength: 1000 }),
    el("button", { type: "submit" }, "Hide")),
    hasSequences && el("div", { class: "line", role: "group", "aria-label": "Criteria" }, "Read ", run.criteria.map((text, t) => el("label", {}, el("input", {
      type: "checkbox", checked: !hiddenCriteria().has(t), "data-criterion": t,
      onchange: (event) => (event.target.checked ? remove({ kind: "criterion", criterion: t }) : add({ kind: "criterion", criterion: t, shown: text })),
    }), " ", name(text, 20)))),
    el("form", { class: "line", onsubmit: attempt(async (form, isShown) => {
      const text = form.get("column");
      const { shown } = await get("columns", { run: state.run, node: state.node, text });
      if (!isShown()) return;
      const column = shown.find((each) => each.name === text) ?? (shown.length === 1 ? shown[0] : null);
      if (!column) throw new Error(shown.length ? `${shown.length} columns or more contain “${text.slice(0, 40)}”; give the whole name` : `no column is called “${text.slice(0, 40)}”`);
      add({ kind: "feature", node: state.node, column: column.column, value: Number(form.get("value")), shown: column.name });
    }) },
    el("label", {}, "Set ", el("input", { name: "column", placeholder: "column", required: true, autocomplete: "off", maxlength: 1000 })),
    el("label", {}, " to ", el("input", { name: "value", type: "number", step: "any", required: true, class: "short" })),
    el("button", { type: "submit" }, "Set")),
    el("p", { class: "muted" }, hasSequences
      ? "Drag a key below a sequence to move it, or choose one head and use the arrow keys. Click an edge of the neighborhood to hide it."
      : "Click an edge of the neighborhood to hide it."));
}

function text(run, edit) {
  return {
    edge: () => ["without the edge to ", name(edit.shown ?? String(edit.b), 24)],
    node: () => ["without the node ", name(edit.shown ?? String(edit.node), 24)],
    criterion: () => ["without ", name(run.criteria[edit.criterion] ?? "?", 24)],
    feature: () => [name(edit.shown ?? String(edit.column), 24), ` = ${number(edit.value)}`],
    key: () => [`key ${edit.key} of head ${edit.head}, `, name(run.criteria[edit.criterion] ?? "?", 24), ` at ${Number(edit.position).toFixed(2)}`],
  }[edit.kind]?.() ?? ["unknown change"];
}

export function drawEdits(run) {
  for (const box of byId("what-if-form").querySelectorAll("input[data-criterion]")) box.checked = !hiddenCriteria().has(Number(box.dataset.criterion));
  replace(byId("edits"),
    state.edits.map((edit) => el("li", {}, el("span", {}, text(run, edit)), el("button", {
      type: "button", class: "small", "aria-label": "Undo this change", onclick: () => change({ edits: state.edits.filter((other) => other !== edit) }),
    }, "undo"))),
    state.edits.length > 1 && el("li", {}, el("button", { type: "button", class: "small", onclick: () => change({ edits: [] }) }, "Undo all")));
}

export function drawResult(run, result, refused) {
  if (!result) {
    replace(byId("what-if-result"), state.edits.length
      ? el("p", { class: refused ? "wrong" : "muted" }, refused ? `Not possible: ${refused}` : "Computing …")
      : el("p", { class: "muted" }, "Without changes. Try one: the new prediction is computed at once."));
    return;
  }
  const [from, to] = [result.before.prediction, result.after.prediction];
  const share = (which) => percent(result[which].probabilities[to]);
  const sentence = from === to
    ? ["The prediction stays ", name(run.classes[to], 30), `: ${share("before")} → ${share("after")}.`]
    : ["The prediction changes from ", name(run.classes[from], 30), " to ", name(run.classes[to], 30), ` (${share("after")}).`];
  replace(byId("what-if-result"),
    el("p", { class: from === to ? "answer" : "answer changed" }, sentence),
    result.held.map((line) => el("p", { class: "muted" }, line)));
}
