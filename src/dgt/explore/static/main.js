// Starts the page, and redraws what depends on a change of the state.

import { clearError, get, say } from "./api.js";
import { startTheme } from "./colors.js";
import { comparedPicture, comparedRows, drawCompared, drawTools, loadCompared } from "./compare.js";
import { byId, el, name, number, percent, replace, select } from "./dom.js";
import { addExport } from "./export.js";
import { columnTable, factChips, probabilityBars } from "./facts.js";
import * as finder from "./find.js";
import { drawAttended, drawLinks } from "./links.js";
import { drawMap, mapPicture, mapPoints, recolor, setMap, setPlace, startMap } from "./map.js";
import { drawRibbons, headWeights } from "./ribbons.js";
import { change, onChange, restore, state } from "./state.js";
import { className, hide, showNode, showText } from "./tooltip.js";
import * as whatIf from "./whatif.js";

let runs = [];
let about = null; // of the node
let result = null; // of the changes
let refused = ""; // why there is no result
let around = null;
let compared = null;
const keys = {};
let playing = 0;

const run = () => runs[state.run];
const isCurrent = (part, node) => part !== null && part.run === state.run && node === state.node;
const outcome = () => (isCurrent(result, result?.node) ? result : null); // not that of the node before
const view = () => outcome()?.view ?? about?.view;
const predicted = () => (state.epoch === null ? about : about.view.predicted ?? about);

// Loads something again if what it depends on has changed, and drops answers that are too late.
async function load(what, key, ask, use, fail = () => {}) {
  if (keys[what] === key) return false;
  keys[what] = key;
  try {
    const answer = await ask();
    if (keys[what] !== key) return false;
    use(answer);
    return true;
  } catch (error) {
    if (keys[what] === key) {
      keys[what] = null;
      fail(error);
      say(error.message, true, "view");
    }
    throw error;
  }
}

async function update() {
  if (!run()) {
    say(`The link refers to run ${state.run}, but ${runs.length === 1 ? "only one run is" : `${runs.length} runs are`} open.`, true);
    change({ run: 0, node: null, edits: [] });
    return;
  }
  if (state.block !== null && state.block >= run().blocks) state.block = null;
  if (state.head !== "all" && !(Number(state.head) < run().heads)) state.head = "all";
  const { run: r, node, block, epoch, hops } = state;
  if (keys.form !== r) {
    keys.form = r;
    byId("run").value = r;
    describeRun();
    finder.drawForm(run());
    finder.leave(r);
    clearInterval(playing);
    playing = 0;
    whatIf.drawForm(run());
  }
  const jobs = [
    load("map", r, () => get("map", { run: r }), (points) => setMap(run(), r, points)),
    load("found", finder.findKey(), () => finder.find(run()), () => {}),
  ];
  if (node === null) {
    about = result = around = null;
    for (const what of ["node", "whatIf", "around", "compared"]) keys[what] = null;
    setPlace(null);
    replace(byId("around-view")); // would be seen again with the next node, until its own arrives
    draw();
  } else {
    const here = { run: r, node, block, epoch };
    jobs.push(
      load("node", JSON.stringify(here), () => get("node", here), (answer) => { about = { ...answer, run: r }; setPlace(answer.place); }),
      load("compared", JSON.stringify([state.withRun, state.withNode, r]), () => loadCompared(runs), (answer) => { compared = answer; }, () => { compared = null; }),
      load("whatIf", JSON.stringify([here, state.edits]), () => (state.edits.length ? whatIf.askWhatIf() : Promise.resolve(null)), (answer) => { result = answer && { ...answer, run: r, node }; refused = ""; }, (error) => { result = null; refused = error.message; }),
      load("around", JSON.stringify({ ...here, hops }), () => get("around", { ...here, hops }), (answer) => { around = { ...answer, run: r }; }),
    );
  }
  // Failures are shown by load, and may come before the job is awaited below.
  for (const job of jobs) job.catch(() => {});
  // The node is drawn as soon as it is there, before its neighborhood.
  await Promise.allSettled(jobs.slice(2, -1)).then(drawNode);
  await Promise.allSettled(jobs.slice(-1)).then(drawAround);
  const done = await Promise.allSettled(jobs);
  if (done.every((job) => job.status === "fulfilled")) clearError("view");
}

function describeRun() {
  const { graph, model, nodes, edges, metric, scores } = run();
  const score = metric && typeof scores.test === "number" ? `, test ${metric} ${scores.test <= 1 ? percent(scores.test) : number(scores.test)}` : "";
  byId("about").replaceChildren(name(model), " on ", name(graph, 60), ` · ${number(nodes)} nodes, ${number(edges)} edges${score}`);
}

function hooks(itsRun, index) {
  return {
    open: (node) => change({ run: index, node, edits: [], ...(index === state.run ? {} : { withRun: null, withNode: null, block: null, epoch: null }) }),
    hover: (event, node, facts, i, weight) => showNode(event, itsRun, index, node, facts, [
      i === null ? null : ["position", String(i)], ["weight", percent(weight)], ["hops", facts.hops === null ? "no path" : String(facts.hops)],
    ]),
    hoverKey: (event, key) => showText(event, `Key ${key.key} of head ${key.head}`, `position ${key.position.toFixed(2)}`, `attention ${percent(key.attention)}`),
    leave: hide,
  };
}

// What is shown may be that of the node before, until the answer arrives: its controls then do nothing.
function whileShown(action) {
  const { run: r, node } = state;
  return (...values) => { if (state.run === r && state.node === node) action(...values); };
}

function draw() {
  drawNode();
  drawAround();
}

function drawNode() {
  byId("hint").hidden = state.node !== null;
  document.body.classList.toggle("no-node", state.node === null);
  finder.mark();
  if (state.node === null) byId("views").hidden = true;
  if (!isCurrent(about, about?.node)) return; // what is shown stays until the answer arrives
  byId("views").hidden = false;
  const r = run();
  replace(byId("node-title"), "Node ", name(about.id, 60));
  const changed = new Map(state.edits.filter((e) => e.kind === "feature" && e.node === state.node).map((e) => [e.column, e.value]));
  replace(byId("facts"), factChips(r, about, predicted().prediction),
    probabilityBars(r, (outcome()?.before ?? predicted()).probabilities, outcome()?.after.probabilities ?? null),
    columnTable(about, whileShown((column, shown, value) => whatIf.add({ kind: "feature", node: state.node, column, value, shown })), changed));
  whatIf.drawEdits(r);
  whatIf.drawResult(r, outcome(), refused);
  drawSequences(r);
  const seen = view();
  const own = hooks(r, state.run);
  replace(byId("attended"), drawAttended(seen, {
    node: state.node, color: state.color, hiddenNodes: whatIf.hiddenNodes(), className: (c) => className(r, c),
    on: {
      open: own.open,
      toggleNode: whileShown((node, hidden) => (hidden ? whatIf.remove({ kind: "node", node }) : whatIf.add({ kind: "node", node, shown: seen.nodes[node].id }))),
    },
  }));
  byId("around").classList.toggle("solo", seen.attended.length === 0);
  drawTools(runs, about);
  drawCompared(runs, about, seen, compared, hooks);
}

function drawSequences(r) {
  const tools = byId("ribbons-tools");
  if (r.attention !== "sequences") {
    replace(tools);
    byId("ribbons-note").textContent = r.attention === "full"
      ? `${r.model} attends to all nodes at once: it has no sequences. Its attention is shown below.`
      : `${r.model} has no attention over nodes, so there are no sequences to show.`;
    replace(byId("ribbons-view"));
    return;
  }
  const blocks = Array.from({ length: r.blocks }, (_, b) => [b, b === r.blocks - 1 && b > 0 ? `${b} (last)` : String(b)]);
  replace(tools,
    r.blocks > 1 && select("block", blocks, state.block ?? r.blocks - 1, (value) => change({ block: Number(value) }), "Block"),
    select("head", [["all", "all"], ...Array.from({ length: r.heads }, (_, m) => [m, String(m)])], state.head, (value) => change({ head: value }), "Head"),
    select("color", [["prediction", "prediction"], ["label", "label"]], state.color, (value) => change({ color: value }), "Color"),
    epochTool(r));
  byId("ribbons-note").textContent = `Bars: the weight on each position, ${state.head === "all" ? "the mean of all heads" : `of head ${state.head}`}. Curves: the kernel of each key. Triangles: the keys at their positions, larger and stronger with more attention.${state.epoch === null ? "" : ` Weights of epoch ${state.epoch}; the colors are those of the trained model.`}${state.edits.length ? " After the changes." : ""}`;
  const place = byId("ribbons-view");
  const focused = document.activeElement?.classList.contains("handle") ? { ...document.activeElement.dataset } : null;
  replace(place, drawRibbons(view(), {
    kernel: r.kernel, criteria: r.criteria, heads: r.heads, head: state.head, color: state.color, hidden: whatIf.hiddenCriteria(),
    width: place.clientWidth, className: (c) => className(r, c),
    on: { ...hooks(r, state.run), move: whileShown((moved) => whatIf.add({ kind: "key", block: state.block ?? r.blocks - 1, ...moved })) },
  }));
  if (focused) place.querySelector(`.handle[data-criterion="${focused.criterion}"][data-head="${focused.head}"][data-key="${focused.key}"]`)?.focus();
}

function epochTool(r) {
  if (!r.epochs.length) return el("span", { class: "muted" }, "Train with --keep-checkpoints to move through epochs.");
  const steps = [...r.epochs, null];
  const at = steps.indexOf(state.epoch) < 0 ? steps.length - 1 : steps.indexOf(state.epoch);
  const word = (epoch) => (epoch === null ? `best (${r.best_epoch ?? "?"})` : String(epoch));
  const show = el("output", {}, word(steps[at]));
  return el("span", { class: "epochs" },
    el("label", {}, "Epoch ", el("input", {
      type: "range", min: 0, max: steps.length - 1, value: at, "aria-valuetext": word(steps[at]), name: "epoch",
      oninput: (event) => { show.textContent = word(steps[Number(event.target.value)]); change({ epoch: steps[Number(event.target.value)] }); },
    })), show,
    el("button", { type: "button", class: "small", onclick: () => play(steps) }, playing ? "Stop" : "Play"));
}

function play(steps) {
  const stop = () => { clearInterval(playing); playing = 0; draw(); };
  if (playing) { stop(); return; }
  let next = 0;
  playing = setInterval(() => {
    change({ epoch: steps[next] });
    next += 1;
    if (next >= steps.length) stop();
  }, 350);
}

function drawAround() {
  if (!isCurrent(about, about?.node) || !isCurrent(around, around?.nodes[0].node)) return;
  const r = run();
  const { nodes } = around;
  replace(byId("around-tools"), select("hops", [1, 2, 3, 4].map((h) => [h, String(h)]), state.hops, (value) => change({ hops: Number(value) }), "Hops"));
  const near = nodes.filter((each) => each.near).length;
  const within = `within ${state.hops} ${state.hops === 1 ? "hop" : "hops"}`;
  const cut = around.more ? `${number(near)} of more than ${number(around.total)} nodes ${within}` : near < around.total ? `${number(near)} of ${number(around.total)} nodes ${within}` : `All ${number(near)} nodes ${within}`;
  const links = r.attention === "none" ? " The model has no attention over nodes." : " Curved links: attention; the nodes on the outer ring are attended to, but lie elsewhere.";
  byId("around-note").textContent = `${cut}. Straight lines: edges; click one to hide it.${links}`;
  const common = { node: state.node, attended: view().attended, color: state.color, hiddenNodes: whatIf.hiddenNodes(), hiddenEdges: whatIf.hiddenEdges(), className: (c) => className(r, c) };
  const own = hooks(r, state.run);
  replace(byId("around-view"), drawLinks(around, { ...common, on: {
    ...own, hover: (event, node, facts, weight) => own.hover(event, node, facts, null, weight),
    hoverEdge: (event, a, b, hidden) => showText(event, el("span", {}, "Edge between ", name(a, 20), " and ", name(b, 20)), hidden ? "hidden; click to show it" : "click to hide it"),
    edge: whileShown((a, b, hidden) => {
      const other = nodes.find((each) => each.node === (a === state.node ? b : a));
      const ends = nodes.filter((each) => each.node === a || each.node === b).map((each) => each.id);
      const shown = a === state.node || b === state.node ? other.id : ends.join(" – ");
      if (hidden) whatIf.remove({ kind: "edge", a, b });
      else whatIf.add({ kind: "edge", a, b, shown });
    }),
  } }));
}

function startExports() {
  const file = (panel) => () => `${panel}-${(about?.id ?? run().name).replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, 40)}`;
  const named = (c) => (c < 0 ? "" : className(run(), c));
  addExport("map", {
    picture: (kind) => (kind === "png" ? byId("map-canvas") : mapPicture()), file: () => `map-${run().name.replace(/[^A-Za-z0-9_-]+/g, "_")}`,
    rows: () => { const p = mapPoints(); return p && [["index", "x", "y", "label", "prediction", "probability"], ...p.nodes.map((n, i) => [n, p.x[i], p.y[i], named(p.label[i]), named(p.prediction[i]), p.probability[i]])]; },
  });
  addExport("ribbons", {
    picture: () => byId("ribbons-view").querySelector("svg"), file: file("sequences"),
    rows: () => view()?.ribbons.length ? [["criterion", "position", "node", "label", "prediction", "weight"], ...view().ribbons.flatMap((row, t) => headWeights(row, state.head).map((weight, i) => {
      const facts = view().nodes[row.nodes[i]];
      return [run().criteria[t], i, facts.id, named(facts.label), named(facts.prediction), weight];
    }))] : null,
  });
  addExport("around", {
    picture: () => byId("around-view").querySelector("svg"), file: file("neighborhood"),
    rows: () => {
      if (!around) return null;
      const ids = new Map(around.nodes.map((each) => [each.node, each.id]));
      return [["kind", "source", "target", "weight"], ...around.edges.map(([a, b]) => ["edge", ids.get(a), ids.get(b), ""]), ...view().attended.map((each) => ["attention", about.id, view().nodes[each.node].id, each.weight])];
    },
  });
  addExport("compare", { picture: comparedPicture, rows: comparedRows, file: file("compared") });
}

async function start() {
  restore();
  startTheme(() => { recolor(); finder.redraw(); draw(); });
  startMap();
  byId("copy-link").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link to this view is copied.");
    } catch {
      say("The address of this page is a link to this view.");
    }
  });
  say("Loading …");
  try {
    runs = await get("runs");
  } catch (error) {
    say(error.message, true);
    return;
  }
  say("");
  replace(byId("run"), runs.map((each, i) => el("option", { value: i }, each.name)));
  document.querySelector("label.run").hidden = runs.length < 2;
  byId("run").addEventListener("change", (event) => change({ run: Number(event.target.value), node: null, edits: [], epoch: null, block: null }));
  startExports();
  finder.drawIdeas(run);
  onChange((values) => {
    hide();
    if (values === null) for (const what of ["form"]) keys[what] = null;
    if (values === null || "map" in values) recolor();
    update();
  });
  let width = 0;
  new ResizeObserver(([main]) => {
    if (main.contentRect.width !== width) { drawMap(); draw(); }
    width = main.contentRect.width;
  }).observe(document.querySelector("main"));
  await update();
  document.documentElement.dataset.ready = "true";
}

start();
