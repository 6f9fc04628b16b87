// Finds nodes by id, label, prediction, mistake, uncertainty or attribute.

import { clearError, get, say } from "./api.js";
import { classColor } from "./colors.js";
import { byId, el, name, number, percent, replace } from "./dom.js";
import { change, state } from "./state.js";

const FIELDS = ["text", "label", "prediction", "part", "mistakes", "attribute", "comparison", "value", "order"];
const NOTHING = { total: 0, start: 0, found: [] };
let found = NOTHING;
let owner = { run: null, index: -1 }; // of what was found
let latest = 0;

function field(label, control) {
  return el("label", {}, el("span", {}, label), control);
}

function choice(key, options) {
  return el("select", { name: key, onchange: (event) => change({ [key]: event.target.value }) },
    options.map(([value, text]) => el("option", { value: String(value), selected: String(value) === String(state[key]) }, text)));
}

function input(key, attributes) {
  let timer = 0;
  return el("input", {
    name: key, value: state[key], autocomplete: "off", maxlength: 1000, ...attributes,
    oninput: (event) => {
      clearTimeout(timer);
      timer = setTimeout(() => change({ [key]: event.target.value }), 200);
    },
  });
}

export function drawForm(run) {
  const classes = run.classes.map((text, c) => [c, text]);
  const form = byId("find-form");
  replace(form,
    field("Id", input("text", { type: "search", placeholder: "part of an id" })),
    field("Label", choice("label", [["", "any"], ...classes, [-1, "no label"]])),
    field("Prediction", choice("prediction", [["", "any"], ...classes])),
    field("Split", choice("part", [["", "any"], ["train", "train"], ["val", "val"], ["test", "test"], ["none", "none"]])),
    field("Only", choice("mistakes", [["", "all nodes"], ["1", "mistakes"]])),
    field("Sort", choice("order", ["order", "least sure", "most sure", "highest degree", "lowest degree"].map((text) => [text, text === "order" ? "as in the graph" : text]))),
    el("fieldset", {}, el("legend", {}, "Attribute"),
      input("attribute", { "aria-label": "Name of a column, or degree", placeholder: run.features ? "column or degree" : "degree" }),
      choice("comparison", ["=", "!=", "<", "<=", ">", ">="].map((text) => [text, text])),
      input("value", { "aria-label": "Value of the column", placeholder: "value", inputmode: "decimal" })));
  form.querySelector("fieldset select").setAttribute("aria-label", "Comparison");
  form.onsubmit = (event) => event.preventDefault();
}

export const findKey = () => JSON.stringify([state.run, ...FIELDS.map((key) => state[key])]);

export async function find(run, start = 0) {
  const mine = ++latest;
  const index = state.run;
  const asked = Object.fromEntries(FIELDS.map((key) => [key, state[key]]));
  if (!asked.attribute || asked.value === "") {
    delete asked.attribute;
    delete asked.value;
  }
  try {
    const answer = await get("search", { run: index, start, ...asked });
    if (mine !== latest) return;
    owner = { run, index };
    found = start ? { ...answer, found: [...found.found, ...answer.found] } : answer;
    clearError("find");
    redraw();
  } catch (error) {
    if (mine === latest) say(error.message, true, "find");
  }
}

export function redraw() {
  const { run } = owner;
  byId("found").textContent = found.total === 1 ? "1 node" : `${number(found.total)} nodes`;
  replace(byId("results"),
    el("ul", { "aria-label": "Nodes found" }, found.found.map((node) => {
      const wrong = node.label >= 0 && node.label !== node.prediction;
      const dot = el("span", { class: "dot", "aria-hidden": "true" });
      dot.style.background = classColor(node.prediction);
      return el("li", {}, el("button", {
        type: "button", class: "result", "data-node": node.node, "aria-current": node.node === state.node ? "true" : null,
        onclick: () => change({ node: node.node, edits: [] }),
      },
      dot, name(node.id, 20), el("span", { class: "muted" }, name(run.classes[node.prediction], 18), ` ${percent(node.probability)}`),
      wrong && el("span", { class: "wrong", role: "img", "aria-label": "mistake", title: "mistake" }, "✗")));
    })),
    found.found.length < found.total && el("button", { type: "button", class: "small", onclick: () => find(run, found.found.length) }, "Show more"));
}

// Nodes of the run before must not be opened in this one.
export function leave(index) {
  if (owner.index === index) return;
  [found, owner] = [NOTHING, { run: null, index }];
  redraw();
  byId("found").textContent = "Searching …";
}

export function mark() {
  for (const button of byId("results").querySelectorAll("button.result")) {
    if (Number(button.dataset.node) === state.node) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

// Starting points: each sets the filters and opens the first node found.
export function drawIdeas(run) {
  const none = { text: "", label: "", prediction: "", part: "", mistakes: "", attribute: "", value: "" };
  const ideas = [
    ["The surest mistake", { mistakes: "1", order: "most sure" }], ["The least sure prediction", { mistakes: "", order: "least sure" }],
    ["The node of highest degree", { mistakes: "", order: "highest degree" }],
  ];
  replace(byId("ideas"), ideas.map(([text, filter]) => el("button", { type: "button", onclick: async () => {
    const index = state.run;
    try {
      const { found: nodes } = await get("search", { run: index, ...filter });
      if (index !== state.run) return;
      if (!nodes.length) throw new Error("there is no such node in this graph");
      change({ ...none, ...filter, node: nodes[0].node, edits: [] });
      drawForm(run());
    } catch (error) {
      say(error.message, true);
    }
  } }, text)));
}
