// Draws the neighborhood of a node, its attention as weighted links, and the table of both.

import { classColor } from "./colors.js";
import { el, name, number, percent, svg, trimmed } from "./dom.js";

const SIZE = 560;
const EDGE = 34;

const place = (value) => EDGE + ((value + 1) / 2) * (SIZE - 2 * EDGE);

// options: node, color, hiddenEdges (Set of "a-b"), hiddenNodes (Set), on: { open, hover, leave, edge }
export function drawLinks(around, options) {
  const { on } = options;
  const at = new Map(around.nodes.map((each) => [each.node, { ...each, px: place(each.x), py: place(-each.y) }]));
  const shown = options.attended.filter((link) => at.has(link.node));
  const weight = new Map(shown.map((link) => [link.node, link.weight]));
  const most = Math.max(1e-9, ...shown.filter((link) => link.node !== options.node).map((link) => link.weight));
  const edges = around.edges.map(([a, b]) => {
    const [from, to] = [at.get(a), at.get(b)];
    const key = edgeKey(a, b);
    const hidden = options.hiddenEdges.has(key);
    const ends = { x1: from.px, y1: from.py, x2: to.px, y2: to.py };
    return svg("g", {
      class: `edge${hidden ? " gone" : ""}${a === options.node || b === options.node ? " own" : ""}`, "data-edge": key,
      onclick: () => on.edge(a, b, hidden), onpointermove: (event) => on.hoverEdge(event, from.id, to.id, hidden), onpointerleave: on.leave,
    }, svg("line", { ...ends, class: "edge-line" }), svg("line", { ...ends, class: "edge-hit" }));
  });
  const base = at.get(options.node);
  const links = shown.filter((link) => link.node !== options.node).map((link) => {
    const to = at.get(link.node);
    // A curve beside the straight line of a possible edge.
    const [dx, dy] = [to.px - base.px, to.py - base.py];
    const [mx, my] = [(base.px + to.px) / 2 - dy * 0.16, (base.py + to.py) / 2 + dx * 0.16];
    return svg("path", {
      d: `M${base.px},${base.py} Q${mx},${my} ${to.px},${to.py}`, class: "link",
      "stroke-width": 0.8 + 5 * (link.weight / most), "stroke-opacity": 0.2 + 0.55 * (link.weight / most),
    });
  });
  const labels = [];
  const radiusOf = (node) => (node === options.node ? 10 : 4 + 5 * Math.sqrt(Math.min(1, (weight.get(node) ?? 0) / most)));
  const nodes = around.nodes.map((each) => {
    const { px, py } = at.get(each.node);
    const own = weight.get(each.node) ?? 0;
    const isBase = each.node === options.node;
    const radius = radiusOf(each.node);
    const hidden = options.hiddenNodes.has(each.node);
    const distance = each.hops === null ? "not connected" : `${each.hops} hops`;
    return svg("g", {
      class: `vertex${isBase ? " base" : ""}${hidden ? " gone" : ""}`, "data-node": each.node, role: "button", tabindex: isBase ? 0 : -1,
      "aria-label": `Node ${trimmed(each.id)}, ${distance}, attention ${percent(own)}`,
      onclick: () => on.open(each.node), onpointermove: (event) => on.hover(event, each.node, each, own), onpointerleave: on.leave,
      onkeydown: (event) => walk(event, () => on.open(each.node)),
    },
    svg("circle", { cx: px, cy: py, r: radius, fill: classColor(options.color === "label" ? each.label : each.prediction), class: "dot-node" }),
    );
  });
  // The heaviest nodes first, above, below or beside the node; a label that would cover another one or a node is left out.
  const circles = [...at.values()].map(({ node, px, py }) => ({ node, box: square(px, py, radiusOf(node)) }));
  for (const each of [{ node: options.node }, ...shown.filter((link) => link.node !== options.node).slice(0, 20)]) {
    const { px, py, id } = at.get(each.node);
    const text = `${trimmed(id, 14)}${weight.has(each.node) ? ` ${percent(weight.get(each.node))}` : ""}`;
    const taken = [...labels, ...circles.filter((other) => other.node !== each.node)];
    const half = 3.2 * Array.from(text).length;
    const away = radiusOf(each.node);
    const spot = [[0, -away - 5], [0, away + 13], [away + half + 3, 4], [-away - half - 3, 4]].map(([dx, dy]) => ({
      x: px + dx, y: py + dy, box: { left: px + dx - half, right: px + dx + half, top: py + dy - 10, bottom: py + dy + 3 },
    })).find(({ box }) => box.left > 0 && box.right < SIZE && taken.every((other) => apart(box, other.box)));
    if (spot) labels.push({ box: spot.box, mark: svg("text", { x: spot.x, y: spot.y, class: "vertex-label" }, text) });
  }
  return svg("svg", {
    viewBox: `0 0 ${SIZE} ${SIZE}`, class: "links", role: "group", "aria-label": "Neighborhood of the node, with its attention as curved links",
  }, around.nodes.some((each) => !each.near) && svg("circle", { cx: SIZE / 2, cy: SIZE / 2, r: 0.97 * (SIZE / 2 - EDGE), class: "ring" }),
  svg("g", { class: "curves" }, links), svg("g", {}, edges), svg("g", {}, nodes), svg("g", { "aria-hidden": "true" }, labels.map((label) => label.mark)));
}

const square = (x, y, radius) => ({ left: x - radius, right: x + radius, top: y - radius, bottom: y + radius });
const apart = (a, b) => a.right < b.left || a.left > b.right || a.bottom < b.top || a.top > b.bottom;
export const edgeKey = (a, b) => `${Math.min(a, b)}-${Math.max(a, b)}`;

function walk(event, open) {
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    open();
  }
  const next = { ArrowRight: "nextElementSibling", ArrowDown: "nextElementSibling", ArrowLeft: "previousElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  const other = next && event.currentTarget[next];
  if (!other) return;
  event.preventDefault();
  event.currentTarget.setAttribute("tabindex", -1);
  other.setAttribute("tabindex", 0);
  other.focus();
}

// options: node, className, hiddenNodes, on: { open, toggleNode }
export function drawAttended(view, options) {
  if (!view.attended.length) return el("p", { class: "muted" }, "No attention over nodes.");
  const most = view.attended[0].weight;
  return el("div", {},
    el("table", { class: "attended" },
      el("caption", {}, view.attended.length < view.attended_total ? `The ${view.attended.length} nodes with most attention, of ${number(view.attended_total)}.` : `All ${view.attended.length} nodes with attention.`,
        view.same_label !== null ? ` ${percent(view.same_label)} lies on nodes with the same label.` : ""),
      el("thead", {}, el("tr", {}, ["node", "weight", "hops", "label", "prediction", "hide"].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, view.attended.map(({ node, weight }) => {
        const facts = view.nodes[node];
        const hidden = options.hiddenNodes.has(node);
        const dot = el("span", { class: "dot", "aria-hidden": "true" });
        dot.style.background = classColor(options.color === "label" ? facts.label : facts.prediction);
        const bar = el("span", { class: "weight-bar", "aria-hidden": "true" });
        bar.style.width = `${(30 * weight) / most}px`;
        return el("tr", { "data-node": node, "data-weight": weight },
          el("td", {}, dot, el("button", { type: "button", class: "as-link", onclick: () => options.on.open(node) }, name(facts.id, 14))),
          el("td", { class: "number" }, bar, percent(weight)),
          el("td", { class: "number" }, facts.hops === null ? "none" : String(facts.hops)),
          el("td", {}, name(options.className(facts.label), 13)),
          el("td", {}, name(options.className(facts.prediction), 13)),
          el("td", {}, node === options.node ? "itself" : el("button", { type: "button", class: "small", onclick: () => options.on.toggleNode(node, hidden) }, hidden ? "show" : "hide")));
      }))));
}
