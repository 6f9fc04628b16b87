// The map of the nodes on a canvas: zoom with the wheel, drag to move, click to open a node.

import { classColor, confidenceColor, repeats, right, wrong } from "./colors.js";
import { byId, el, name, number, percent, replace, svg } from "./dom.js";
import { change, state } from "./state.js";
import { hide, showNode } from "./tooltip.js";

const NEAR = 12;
let run = null;
let index = -1; // of the run
let points = null;
let place = null;
let zoom = { scale: 1, x: 0, y: 0 };
let drag = null;

export const mapPoints = () => points;

function color(i) {
  if (state.map === "label") return classColor(points.label[i]);
  if (state.map === "mistakes") return points.label[i] >= 0 && points.label[i] !== points.prediction[i] ? wrong() : right();
  if (state.map === "confidence") return confidenceColor(points.probability[i]);
  return classColor(points.prediction[i]);
}

function toScreen(x, y, size) {
  const half = size / 2;
  return [half + (x * zoom.scale + zoom.x) * half * 0.94, half - (y * zoom.scale + zoom.y) * half * 0.94];
}

export function drawMap() {
  const canvas = byId("map-canvas");
  const size = canvas.clientWidth;
  if (!points || !size) return;
  const ratio = devicePixelRatio || 1;
  canvas.width = canvas.height = Math.round(size * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--surface");
  context.fillRect(0, 0, size, size);
  const radius = Math.min(5, Math.max(1, (points.nodes.length > 5000 ? 1.1 : 1.8) * Math.sqrt(zoom.scale)));
  // One color after the other: mistakes last, so that they lie on top.
  const groups = new Map();
  for (let i = 0; i < points.nodes.length; i += 1) {
    const key = color(i);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(i);
  }
  const order = [...groups.keys()].sort((a, b) => (a === wrong()) - (b === wrong()));
  context.globalAlpha = points.nodes.length > 5000 ? 0.55 : 0.8;
  for (const key of order) {
    context.fillStyle = key;
    for (const i of groups.get(key)) {
      const [x, y] = toScreen(points.x[i], points.y[i], size);
      if (x < -5 || y < -5 || x > size + 5 || y > size + 5) continue;
      context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    }
  }
  context.globalAlpha = 1;
  if (place) {
    const [x, y] = toScreen(place[0], place[1], size);
    context.lineWidth = 5;
    context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--surface");
    context.beginPath();
    context.arc(x, y, 8, 0, 2 * Math.PI);
    context.stroke();
    context.lineWidth = 2.5;
    context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
    context.stroke();
  }
}

function nearest(event) {
  const canvas = byId("map-canvas");
  const box = canvas.getBoundingClientRect();
  let best = -1;
  let least = NEAR * NEAR;
  for (let i = 0; points && i < points.nodes.length; i += 1) {
    const [x, y] = toScreen(points.x[i], points.y[i], box.width);
    const away = (x - event.clientX + box.left) ** 2 + (y - event.clientY + box.top) ** 2;
    if (away < least) [best, least] = [i, away];
  }
  return best;
}

function legend() {
  const items = {
    mistakes: [["mistake", wrong()], ["right, or without a label", right()]],
    confidence: [["sure", confidenceColor(1)], ["unsure", confidenceColor(0)]],
  }[state.map] ?? [...run.classes.map((text, c) => [text, classColor(c)]), ...(state.map === "label" ? [["no label", classColor(-1)]] : [])];
  replace(byId("legend"), items.slice(0, 40).map(([text, shade]) => {
    const dot = el("span", { class: "dot", "aria-hidden": "true" });
    dot.style.background = shade;
    return el("li", {}, dot, name(text, 28));
  }), items.length > 40 && el("li", {}, `and ${items.length - 40} more`), repeats(run.classes.length) && el("li", {}, "(colors repeat)"));
}

export function setMap(newRun, newIndex, newPoints) {
  [run, index, points, zoom] = [newRun, newIndex, newPoints, { scale: 1, x: 0, y: 0 }];
  const shares = points.shares.map((share) => percent(share)).join(" and ");
  const sample = points.nodes.length < points.total ? `A sample of ${number(points.nodes.length)} of ${number(points.total)} nodes. ` : `All ${number(points.total)} nodes. `;
  byId("map-note").textContent = `${sample}Two principal components of the representations (${shares} of the variance).`;
  const modes = [["prediction", "prediction"], ["label", "label"], ["mistakes", "mistakes"], ["confidence", "confidence"]];
  replace(byId("map-color"), modes.map(([value, text]) => el("option", { value, selected: value === state.map }, text)));
  recolor();
}

export function setPlace(newPlace) {
  place = newPlace;
  drawMap();
}

export function recolor() {
  if (!points) return;
  byId("map-color").value = state.map;
  legend();
  drawMap();
}

// The same picture as SVG, for the export.
export function mapPicture() {
  if (!points) return null;
  const size = 640;
  const shown = points.nodes.map((_, i) => i).filter((i) => toScreen(points.x[i], points.y[i], size).every((v) => v >= 0 && v <= size));
  const picture = svg("svg", { viewBox: `0 0 ${size} ${size}`, width: size, height: size }, shown.map((i) => {
    const [x, y] = toScreen(points.x[i], points.y[i], size);
    return svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 2, fill: color(i) });
  }));
  return picture;
}

export function startMap() {
  const canvas = byId("map-canvas");
  byId("map-color").addEventListener("change", (event) => change({ map: event.target.value }));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY / 400);
    const scale = Math.min(60, Math.max(0.1, zoom.scale * factor));
    const box = canvas.getBoundingClientRect();
    const half = (box.width / 2) * 0.94;
    const px = (event.clientX - box.left - box.width / 2) / half;
    const py = -(event.clientY - box.top - box.width / 2) / half;
    const ratio = scale / zoom.scale;
    zoom = { scale, x: px - (px - zoom.x) * ratio, y: py - (py - zoom.y) * ratio };
    drawMap();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, from: { ...zoom }, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      const i = nearest(event);
      canvas.style.cursor = i >= 0 ? "pointer" : "grab";
      if (i >= 0) showNode(event, run, index, points.nodes[i], null);
      else hide();
      return;
    }
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (Math.abs(dx) + Math.abs(dy) > 4) drag.moved = true;
    if (!drag.moved) return;
    const half = (canvas.clientWidth / 2) * 0.94;
    zoom = { ...zoom, x: drag.from.x + dx / half, y: drag.from.y - dy / half };
    drawMap();
  });
  canvas.addEventListener("pointerup", (event) => {
    const clicked = drag && !drag.moved;
    drag = null;
    if (!clicked) return;
    const i = nearest(event);
    if (i >= 0 && index === state.run) change({ node: points.nodes[i], edits: [] });
  });
  canvas.addEventListener("pointerleave", hide);
  canvas.addEventListener("dblclick", () => {
    zoom = { scale: 1, x: 0, y: 0 };
    drawMap();
  });
  new ResizeObserver(drawMap).observe(canvas);
}
