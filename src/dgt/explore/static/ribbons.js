// Draws the sequences of a node: one row per criterion, bars for the weight of each position, a bell
// for each key, and a handle below at its fractional position.

import { classColor } from "./colors.js";
import { percent, svg, trimmed } from "./dom.js";

const LEFT = 12;
const TITLE = 22;
const BARS = 74;
const FOOT = 44;
const ROW = TITLE + BARS + FOOT + 10;
const EMPTY_ROW = TITLE + 10;
const NARROWEST = 15;
const STEPS = 48;
const LEGEND_LINE = 19;
const MOST_CLASSES = 16;

export function kernelValue(kernel, distance) {
  if (kernel.interpolation === "rbf") {
    return Math.abs(distance) < kernel.epsilon ? Math.exp(-(distance * distance) / kernel.gamma) : 0;
  }
  return Math.max(0, 1 - Math.abs(distance));
}

// The weight of a key at every position, so that the bells of a head add up to its bars.
export function bellScale(kernel, position, length) {
  if (!kernel.normalize) return 1;
  let total = 0;
  for (let i = 0; i < length; i += 1) total += kernelValue(kernel, position - i);
  return total > 0 ? 1 / total : 0;
}

export function headWeights(row, head) {
  const heads = head === "all" ? row.weights : [row.weights[Number(head)] ?? row.weights[0]];
  return row.nodes.map((_, i) => heads.reduce((sum, weights) => sum + weights[i], 0) / heads.length);
}

function shownKeys(row, head) {
  const keys = [];
  row.keys.forEach((ofHead, m) => {
    if (head !== "all" && Number(head) !== m) return;
    ofHead.forEach((key, k) => keys.push({ ...key, head: m, key: k }));
  });
  return keys;
}

function bell(kernel, key, row, x, y, top, share) {
  const reach = kernel.interpolation === "rbf" ? kernel.epsilon : 1;
  const scale = share * key.attention * bellScale(kernel, key.position, row.length);
  const points = [];
  for (let s = 0; s <= STEPS; s += 1) {
    const at = key.position - reach + (2 * reach * s) / STEPS;
    if (at < -0.5 || at > row.nodes.length - 0.5) continue;
    points.push(`${x(at).toFixed(1)},${(y - Math.min(1.05, (scale * kernelValue(kernel, key.position - at)) / top) * BARS).toFixed(1)}`);
  }
  const ends = points.length ? [points[0], points.at(-1)].map((point) => `${point.split(",")[0]},${y}`) : [];
  return svg("g", {}, svg("polygon", { points: [ends[0], ...points, ends[1]].join(" "), class: "bell-area" }), svg("polyline", { points: points.join(" "), class: "bell" }));
}

// options: kernel, criteria, heads, head, color, hidden (criteria), width, on: { open, hover, leave, move }
export function drawRibbons(view, options) {
  const { kernel, head, color, on } = options;
  const longest = Math.max(1, ...view.ribbons.map((row) => row.nodes.length));
  const cell = Math.max(NARROWEST, (options.width - 2 * LEFT) / longest);
  const width = Math.ceil(2 * LEFT + cell * longest);
  const x = (p) => LEFT + (p + 0.5) * cell;
  const all = view.ribbons.map((row) => headWeights(row, head));
  const top = Math.max(1e-9, ...all.flat());
  let height = 0;
  const groups = view.ribbons.map((row, t) => {
    const start = height;
    height += row.length ? ROW : EMPTY_ROW;
    return drawRow(row, t, all[t], start);
  });
  const legend = drawLegend(height + 6);
  height += legend.height;
  return svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, class: "ribbons",
    role: "group", "aria-label": "Sequences of the node, one per criterion",
  }, groups, legend.picture);

  // The classes that occur, part of the picture so that it is saved with it.
  function drawLegend(start) {
    const shown = view.ribbons.flatMap((row) => row.nodes).map((node) => (color === "label" ? view.nodes[node].label : view.nodes[node].prediction));
    const classes = [...new Set(shown)].sort((a, b) => (a < 0) - (b < 0) || a - b);
    const items = classes.slice(0, MOST_CLASSES).map((c) => [classColor(c), c < 0 ? "no label" : trimmed(options.className(c), 28)]);
    if (classes.length > MOST_CLASSES) items.push(["none", `and ${classes.length - MOST_CLASSES} more`]);
    let [left, y] = [LEFT, start + 12];
    const marks = [[null, `Color: ${color}`], ...items].map(([shade, text]) => {
      const size = (shade ? 16 : 0) + 7.2 * Array.from(text).length + 14;
      if (left > LEFT && left + size > width - LEFT) [left, y] = [LEFT, y + LEGEND_LINE];
      const mark = svg("g", {}, shade && svg("rect", { x: left, y: y - 9, width: 11, height: 11, fill: shade }),
        svg("text", { x: left + (shade ? 16 : 0), y, class: shade ? "legend-name" : "legend-name legend-title" }, text));
      left += size;
      return mark;
    });
    return { height: classes.length ? y - start + 14 : 0, picture: classes.length > 0 && svg("g", { class: "ribbon-legend" }, marks) };
  }

  function drawRow(row, t, weights, start) {
    const base = start + TITLE + BARS;
    const keys = shownKeys(row, head);
    const share = head === "all" ? 1 / row.keys.length : 1;
    const hidden = options.hidden?.has(t);
    const title = svg("text", { x: LEFT, y: start + 15, class: "row-title" }, options.criteria[t] ?? String(t));
    const note = svg("text", { x: width - LEFT, y: start + 15, class: "row-note" },
      hidden ? "hidden" : row.length === 0 ? "empty" : `${row.length} nodes${row.beyond > 0 ? `, ${percent(row.beyond)} of the weight lies beyond` : ""}; highest bar ${percent(Math.max(0, ...weights))}`);
    if (!row.length) return svg("g", { class: "row hidden-row", "data-criterion": t }, title, note);
    const scale = svg("line", { x1: LEFT, x2: LEFT + cell * row.nodes.length, y1: base, y2: base, class: "axis" });
    const positions = row.nodes.map((node, i) => {
      const facts = view.nodes[node];
      const shade = classColor(color === "label" ? facts.label : facts.prediction);
      const height = (weights[i] / top) * BARS;
      const label = `Position ${i}: node ${trimmed(facts.id)}, label ${options.className(facts.label)}, prediction ${options.className(facts.prediction)}, weight ${percent(weights[i])}`;
      return svg("g", {
        class: `position${i === 0 ? " base" : ""}`, role: "button", tabindex: i === 0 ? 0 : -1, "aria-label": label, "data-node": node,
        "data-criterion": t, "data-position": i, "data-weight": weights[i],
        onclick: () => on.open(node), onpointermove: (event) => on.hover(event, node, facts, i, weights[i]), onpointerleave: on.leave,
        onkeydown: (event) => step(event, () => on.open(node)),
      },
      svg("rect", { x: x(i - 0.5), y: base - BARS, width: cell, height: BARS + 26, class: "hit" }),
      svg("rect", { x: x(i - 0.38), y: base - height, width: cell * 0.76, height, fill: shade, class: "bar" }),
      svg("rect", { x: x(i - 0.46), y: base + 2, width: cell * 0.92, height: 7, fill: shade, class: "strip" }),
      cell >= 26 && svg("text", { x: x(i), y: base + 20, class: "id" }, trimmed(facts.id, Math.max(2, Math.floor(cell / 6.4)))));
    });
    const bells = svg("g", { class: "bells", "aria-hidden": "true" }, keys.map((key) => bell(kernel, key, row, x, base, top, share)));
    const handles = svg("g", { class: "handles" }, keys.map((key) => handle(key, row, t, base)));
    return svg("g", { class: "row", "data-criterion": t }, title, note, positions, scale, bells, handles);
  }

  function handle(key, row, t, base) {
    const last = Math.max(0, row.length - 1);
    const size = 4 + 4 * Math.sqrt(key.attention);
    const y = base + 32;
    const shape = (p) => `${x(p)},${y - size} ${x(p) + size},${y + size} ${x(p) - size},${y + size}`;
    const mark = svg("polygon", {
      points: shape(key.position), class: "handle", role: "slider", tabindex: head === "all" ? -1 : 0,
      "aria-label": `Key ${key.key} of head ${key.head}, ${options.criteria[t]}`, "aria-valuemin": 0, "aria-valuemax": last,
      "aria-valuenow": key.position.toFixed(2), "aria-valuetext": `position ${key.position.toFixed(2)}, attention ${percent(key.attention)}`,
      "data-criterion": t, "data-head": key.head, "data-key": key.key,
      "fill-opacity": 0.35 + 0.65 * key.attention,
      onpointerenter: (event) => on.hoverKey(event, key), onpointerleave: on.leave,
      onkeydown: (event) => {
        const away = { ArrowLeft: -0.25, ArrowDown: -0.25, ArrowRight: 0.25, ArrowUp: 0.25, Home: -last, End: last }[event.key];
        if (away === undefined) return;
        event.preventDefault();
        on.move({ criterion: t, head: key.head, key: key.key, position: clamp(key.position + away) });
      },
      onpointerdown: (event) => {
        event.preventDefault();
        mark.setPointerCapture(event.pointerId);
        const box = mark.ownerSVGElement.getBoundingClientRect();
        const ratio = width / box.width;
        let position = key.position;
        mark.onpointermove = (moving) => {
          position = clamp(((moving.clientX - box.left) * ratio - LEFT) / cell - 0.5);
          mark.setAttribute("points", shape(position));
          on.hoverKey(moving, { ...key, position });
        };
        mark.onpointerup = mark.onpointercancel = () => {
          mark.onpointermove = mark.onpointerup = mark.onpointercancel = null;
          on.leave();
          if (Math.abs(position - key.position) > 1e-3) on.move({ criterion: t, head: key.head, key: key.key, position });
        };
      },
    });
    return mark;

    function clamp(p) {
      return Math.min(last, Math.max(0, p));
    }
  }
}

// Arrow keys walk along the positions of a row; Enter opens the node.
function step(event, open) {
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    open();
    return;
  }
  const next = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key];
  const other = next && event.currentTarget[next];
  if (!other?.classList.contains("position")) return;
  event.preventDefault();
  event.currentTarget.setAttribute("tabindex", -1);
  other.setAttribute("tabindex", 0);
  other.focus();
}
