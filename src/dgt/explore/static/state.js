// What is shown, kept in the address after the #, so that a link restores the view.

const DEFAULTS = {
  run: 0, node: null, block: null, head: "all", color: "prediction", hops: 1, epoch: null, map: "prediction",
  withRun: null, withNode: null, edits: [],
  text: "", label: "", prediction: "", part: "", mistakes: "", attribute: "", comparison: "=", value: "", order: "order",
};
const INTEGERS = ["run", "node", "block", "hops", "epoch", "withRun", "withNode"];
const CHOICES = {
  color: ["prediction", "label"], map: ["prediction", "label", "mistakes", "confidence"], mistakes: ["", "1"], part: ["", "train", "val", "test", "none"],
  comparison: ["=", "!=", "<", "<=", ">", ">="], order: ["order", "least sure", "most sure", "highest degree", "lowest degree"],
};
// The numbers of each kind of change.
const KINDS = {
  edge: ["a", "b"], node: ["node"], criterion: ["criterion"], feature: ["node", "column", "value"], key: ["block", "criterion", "head", "key", "position"],
};
const listeners = [];

const isEdit = (edit) => Object.hasOwn(KINDS, String(edit?.kind)) && KINDS[edit.kind].every((name) => Number.isFinite(edit[name]))
  && (edit.shown === undefined || typeof edit.shown === "string");

export const state = { ...DEFAULTS };

function read() {
  const found = { ...DEFAULTS, edits: [] };
  const query = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(DEFAULTS)) {
    const text = query.get(name);
    if (text === null) continue;
    if (name === "edits") {
      try {
        const edits = JSON.parse(text);
        if (Array.isArray(edits)) found.edits = edits.filter(isEdit).slice(0, 50);
      } catch { /* a damaged link: without changes */ }
    } else if (INTEGERS.includes(name)) {
      if (/^\d{1,9}$/.test(text)) found[name] = Number(text); // anything else: the default
    } else if (text.length <= 1000 && (!CHOICES[name] || CHOICES[name].includes(text))) found[name] = text;
  }
  return found;
}

function write() {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (name === "edits") {
      if (value.length) query.set(name, JSON.stringify(value));
    } else if (value !== DEFAULTS[name] && value !== null) query.set(name, value);
  }
  return `#${query}`;
}

export function onChange(listener) {
  listeners.push(listener);
}

// A new node or run gets an entry in the browser's history; other changes replace the entry.
export function change(values) {
  const moves = (values.node !== undefined && values.node !== state.node) || (values.run !== undefined && values.run !== state.run);
  Object.assign(state, values);
  history[moves ? "pushState" : "replaceState"](null, "", write());
  for (const listener of listeners) listener(values);
}

export function restore() {
  Object.assign(state, read());
}

// Also called when the part of the address after the # is changed by hand.
window.addEventListener("popstate", () => {
  restore();
  for (const listener of listeners) listener(null);
});
