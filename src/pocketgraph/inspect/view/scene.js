"use strict";
// A picture of a graph: boxes whose places Python worked out, opened in place. Nothing is fetched from anywhere, and names
// of the model only ever become text.

const NODE = 0, SCOPE = 1, ENTRY = 2, EXIT = 3;
const LOOP = 1, BRANCH = 2, BACK = 3;   // roles of nodes
const PAD = 14, TITLE = 24;
const KINDS = ["vanished", "came", "changed", "rewired"];
const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const METRICS = { time: ["time", "microseconds"], FLOPs: ["FLOPs", "flops"], weights: ["bytes of weights", "weights"],
  memory: ["bytes of outputs", "memory"], sensitivity: ["sensitivity to eight bits", "sensitivity"] };

for (const graph of data.graphs) {
  graph.nodes = graph.nodes.map(([name, op, family, device, inputs, outputs, attributes, weights, memory, flops,
    microseconds, calls, engine, more], number) => ({ number, name, op, family, device, inputs, outputs, attributes, weights,
    memory, flops: flops ?? 0, microseconds, calls, engine, isCounted: flops !== null, readers: [], role: more.role ?? 0, functions: more.functions ?? [], reason: more.reason, bits: more.bits,
    bars: more.bars, decibels: more.sensitivity, sensitivity: more.sensitivity == null ? 0 : Math.max(0.01, 60 - more.sensitivity), text: [name, op, ...outputs].join("\n").toLowerCase() }));
  graph.scopes = graph.scopes.map(([path, label, parent, nodes, isOpen, items, links, width, height, copies], number) =>
    ({ number, path, label, parent, nodes, canOpen: isOpen, items, links, width, height, copies, sums: {}, hasLoop: false }));
  graph.nodes.forEach((node) => node.inputs.forEach(([, source]) => { if (source >= 0) graph.nodes[source].readers.push(node.number); }));
  graph.home = new Map();   // the scope that each node stands in
  graph.scopes.forEach((scope) => scope.items.forEach(([kind, number]) => { if (kind === NODE) graph.home.set(number, scope.number); }));
  for (const metric of Object.values(METRICS).map((pair) => pair[1])) {
    graph.scopes.forEach((scope) => { scope.sums[metric] = 0; });
    graph.nodes.forEach((node) => scopesAround(graph, node.number, (scope) => {
      scope.sums[metric] = metric === "sensitivity" ? Math.max(scope.sums.sensitivity, node.sensitivity) : scope.sums[metric] + node[metric];
    }));
  }
  graph.nodes.filter((node) => node.role === BACK).forEach((node) => scopesAround(graph, node.number, (scope) => { if (scope.number) scope.hasLoop = true; }));
  graph.opened = new Set([0]);
  graph.most = {};
  for (const [, metric] of Object.values(METRICS)) graph.most[metric] = graph.nodes.reduce((most, node) => Math.max(most, node[metric]), 1e-9);
}
function scopesAround(graph, number, visit) {
  for (let at = graph.home.get(number); at !== undefined && at >= 0; at = graph.scopes[at].parent) visit(graph.scopes[at]);
}
const openTo = (graph, number) => scopesAround(graph, number, (scope) => graph.opened.add(scope.number));

// What is shown where: one pane, or two beside each other. ``state`` is the one that was touched last.
const panes = [...document.querySelectorAll(".pane")].map((box) => ({ box, canvas: box.querySelector("canvas"), caption: box.querySelector(".caption"),
  pen: box.querySelector("canvas").getContext("2d"), graph: data.graphs[0], opened: null, selected: null, way: null, x: 0, y: 0, zoom: 1, scene: null, changes: new Map(), changedIn: new Map() }));
let state = panes[0];
const look = { color: data.steps.length ? "change" : "family", step: null, from: null };

// Numbers for people.
const scaled = (value, units, base) => {
  let at = 0;
  while (value >= base && at < units.length - 1) { value /= base; at++; }
  return `${value < 10 && at ? value.toFixed(2) : value < 100 && at ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
};
const shownAs = { flops: (v) => scaled(v, ["", "k", "M", "G", "T"], 1000) + "FLOPs",
  weights: (v) => scaled(v, ["B", "kB", "MB", "GB"], 1000), memory: (v) => scaled(v, ["B", "kB", "MB", "GB"], 1000),
  microseconds: (v) => (v < 1000 ? `${v.toFixed(1)} µs` : `${(v / 1000).toFixed(2)} ms`), sensitivity: (v) => `${(60 - v).toFixed(1)} dB left` };
const letters = (text) => [...text];   // an emoji or a rare letter is not cut in two
const short = (text, most = 26) => { if (text.length <= most) return text; const all = letters(text); return all.length <= most ? text : `${all.slice(0, most >> 1).join("")}…${all.slice(1 - (most >> 1)).join("")}`; };
const tail = (name) => (name.length <= 36 ? name : `…${letters(name).slice(-35).join("")}`);
const within = (name, path) => (path && name.startsWith(`${path}/`) ? name.slice(path.length + 1) : name);

// Places. Opening a box stretches the columns and rows that it stands in, so that order and gaps stay as they were.
function stretched(intervals) {
  const stops = [...new Set(intervals.flatMap(([low, high]) => [low, high]))].sort((a, b) => a - b);
  const starts = [], rates = [], shifts = [];
  let shift = 0;
  for (let i = 0; i < stops.length; i++) {
    const middle = (stops[i] + (stops[i + 1] ?? stops[i])) / 2;
    let rate = 0;
    if (i + 1 < stops.length)
      for (const [low, high, grown] of intervals) if (low <= middle && middle <= high) rate = Math.max(rate, grown / (high - low));
    starts.push(stops[i]); rates.push(rate); shifts.push(shift);
    if (i + 1 < stops.length) shift += rate * (stops[i + 1] - stops[i]);
  }
  return (value) => {
    let low = 0, high = starts.length;
    while (low < high) { const middle = (low + high) >> 1; if (starts[middle] <= value) low = middle + 1; else high = middle; }
    return low ? value + shifts[low - 1] + rates[low - 1] * (value - starts[low - 1]) : value;
  };
}

function inside(graph, number) {
  const scope = graph.scopes[number], across = [], down = [], children = new Map();
  scope.items.forEach(([kind, inner, x, y, w, h], at) => {
    if (kind !== SCOPE || !state.opened.has(inner) || !graph.scopes[inner].canOpen) return;
    const child = inside(graph, inner);
    children.set(at, child);
    across.push([x - w / 2, x + w / 2, Math.max(0, child.width + 2 * PAD - w)]);
    down.push([y - h / 2, y + h / 2, Math.max(0, child.height + TITLE + 2 * PAD - h)]);
  });
  const f = stretched(across), g = stretched(down);
  const boxes = scope.items.map(([kind, inner, x, y, w, h], at) => {
    const child = children.get(at);
    if (!child) return { kind, number: inner, x: f(x), y: g(y), w, h };
    return { kind, number: inner, x: (f(x - w / 2) + f(x + w / 2)) / 2, y: (g(y - h / 2) + g(y + h / 2)) / 2,
      w: Math.max(w, child.width + 2 * PAD), h: Math.max(h, child.height + TITLE + 2 * PAD), child };
  });
  const links = scope.links.map(([source, target, control, label, count, bends]) => {
    const points = [];
    for (let i = 0; i < bends.length; i += 2) points.push([f(bends[i]), g(bends[i + 1])]);
    return { source: boxes[source], target: boxes[target], control, label, count, points };
  });
  return { boxes, links, width: f(scope.width), height: g(scope.height) };
}

function buildScene() {
  const graph = state.graph, boxes = [], links = [];
  const walk = (level, left, top, depth, home) => {
    for (const box of level.boxes) {
      Object.assign(box, { x: box.x + left, y: box.y + top, depth, home });
      boxes.push(box);
      if (box.child) walk(box.child, box.x - box.child.width / 2, box.y - box.h / 2 + TITLE + PAD, depth + 1, box.number);
    }
    for (const link of level.links) {
      const points = link.points.map(([x, y]) => [x + left, y + top]), { source, target } = link;
      if (source === target) {
        const x = source.x + source.w / 2;
        link.path = [[x, source.y - 8], [x + 16, source.y], [x, source.y + 8]];
      } else {
        const next = points[0] ?? [target.x, target.y], before = points[points.length - 1] ?? [source.x, source.y];
        link.path = [[source.x, source.y + (next[1] >= source.y ? 1 : -1) * source.h / 2], ...points,
          [target.x, target.y - (before[1] <= target.y ? 1 : -1) * target.h / 2]];
      }
      const xs = link.path.map((p) => p[0]), ys = link.path.map((p) => p[1]);
      link.isBack = !link.control && source !== target && source.y > target.y + target.h / 2;
      link.reach = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
      links.push(link);
    }
  };
  const whole = inside(graph, 0);
  walk(whole, 0, 0, 0, 0);
  state.scene = { boxes, links, width: whole.width, height: whole.height };
}

