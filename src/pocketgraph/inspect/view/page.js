"use strict";
// A picture of a graph: boxes whose places Python worked out, opened in place. Nothing is fetched from anywhere, and names
// of the model only ever become text.

const NODE = 0, SCOPE = 1, ENTRY = 2, EXIT = 3;
const PAD = 14, TITLE = 24;
const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const canvas = element("canvas"), pen = canvas.getContext("2d");
const METRICS = { time: ["time", "microseconds"], FLOPs: ["FLOPs", "flops"], weights: ["bytes of weights", "weights"],
  memory: ["bytes of outputs", "memory"] };

for (const graph of data.graphs) {
  graph.nodes = graph.nodes.map(([name, op, family, device, inputs, outputs, attributes, weights, memory, flops,
    microseconds, calls, engine], number) => ({ number, name, op, family, device, inputs, outputs, attributes, weights,
    memory, flops: flops ?? 0, microseconds, calls, engine, isCounted: flops !== null, readers: [], text: [name, op, ...outputs].join("\n").toLowerCase() }));
  graph.scopes = graph.scopes.map(([path, label, parent, nodes, isOpen, items, links, width, height], number) =>
    ({ number, path, label, parent, nodes, canOpen: isOpen, items, links, width, height, sums: {} }));
  graph.nodes.forEach((node) => node.inputs.forEach(([, source]) => { if (source >= 0) graph.nodes[source].readers.push(node.number); }));
  graph.home = new Map();   // the scope that each node stands in
  graph.scopes.forEach((scope) => scope.items.forEach(([kind, number]) => { if (kind === NODE) graph.home.set(number, scope.number); }));
  for (const metric of Object.values(METRICS).map((pair) => pair[1])) {
    graph.scopes.forEach((scope) => { scope.sums[metric] = 0; });
    graph.nodes.forEach((node) => {
      for (let at = graph.home.get(node.number); at !== undefined && at >= 0; at = graph.scopes[at].parent)
        graph.scopes[at].sums[metric] += node[metric];
    });
  }
  graph.opened = new Set([0]);
  graph.most = {};
  for (const [, metric] of Object.values(METRICS)) graph.most[metric] = graph.nodes.reduce((most, node) => Math.max(most, node[metric]), 1e-9);
}

const state = { graph: data.graphs[0], color: "family", selected: null, way: null, x: 0, y: 0, zoom: 1, scene: null };

// Numbers for people.
const scaled = (value, units, base) => {
  let at = 0;
  while (value >= base && at < units.length - 1) { value /= base; at++; }
  return `${value < 10 && at ? value.toFixed(2) : value < 100 && at ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
};
const shownAs = { flops: (v) => scaled(v, ["", "k", "M", "G", "T"], 1000) + "FLOPs",
  weights: (v) => scaled(v, ["B", "kB", "MB", "GB"], 1000), memory: (v) => scaled(v, ["B", "kB", "MB", "GB"], 1000),
  microseconds: (v) => (v < 1000 ? `${v.toFixed(1)} µs` : `${(v / 1000).toFixed(2)} ms`) };
const short = (text) => (text.length <= 26 ? text : `${text.slice(0, 13)}…${text.slice(-12)}`);
const tail = (name) => (name.length <= 36 ? name : `…${name.slice(-35)}`);
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
    if (kind !== SCOPE || !graph.opened.has(inner) || !graph.scopes[inner].canOpen) return;
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
      link.reach = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
      links.push(link);
    }
  };
  const whole = inside(graph, 0);
  walk(whole, 0, 0, 0, 0);
  state.scene = { boxes, links, width: whole.width, height: whole.height };
}

// Colours.
const isDark = () => document.documentElement.classList.contains("dark");
const mixed = (a, b, share) => {
  const parts = [1, 3, 5].map((i) => Math.round(parseInt(a.slice(i, i + 2), 16) * share + parseInt(b.slice(i, i + 2), 16) * (1 - share)));
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
};
function colorsOf(box) {
  const base = isDark() ? "#20252b" : "#ffffff", graph = state.graph;
  if (box.kind === ENTRY || box.kind === EXIT) return [base, isDark() ? "#4d5661" : "#b9c0c8"];
  if (state.color === "family") {
    const color = box.kind === NODE ? data.families[graph.nodes[box.number].family][1] : "#8a94a0";
    return [mixed(color, base, box.kind === NODE ? (isDark() ? 0.38 : 0.5) : 0.16), color];
  }
  const metric = METRICS[state.color][1];
  const value = box.kind === NODE ? graph.nodes[box.number][metric] : graph.scopes[box.number].sums[metric];
  const share = Math.min(1, Math.sqrt(value / graph.most[metric]));
  return [value ? mixed("#d9480f", base, 0.08 + 0.72 * share) : base, value ? "#d9480f" : isDark() ? "#4d5661" : "#b9c0c8"];
}

// Drawing.
let waiting = false;
const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };

function trace(to, path) {
  to.moveTo(path[0][0], path[0][1]);
  for (let i = 1; i < path.length; i++) {
    const [x0, y0] = path[i - 1], [x1, y1] = path[i], middle = (y0 + y1) / 2;
    to.bezierCurveTo(x0, middle, x1, middle, x1, y1);
  }
}

function draw() {
  waiting = false;
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  }
  const { zoom, x, y, scene } = state, style = getComputedStyle(document.documentElement);
  const front = style.getPropertyValue("--front").trim(), dim = style.getPropertyValue("--dim").trim();
  const accent = style.getPropertyValue("--accent").trim();
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.fillStyle = style.getPropertyValue("--back").trim();
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * x, ratio * y);
  const view = [-x / zoom, -y / zoom, (width - x) / zoom, (height - y) / zoom];
  const isSeen = (low, top, right, bottom) => right >= view[0] && low <= view[2] && bottom >= view[1] && top <= view[3];
  const seen = scene.boxes.filter((box) => isSeen(box.x - box.w / 2, box.y - box.h / 2, box.x + box.w / 2, box.y + box.h / 2));
  const isFar = zoom < 0.3, line = Math.max(1, 0.8 / zoom);
  for (const box of seen) {
    if (!box.child) continue;
    pen.beginPath(); pen.roundRect(box.x - box.w / 2, box.y - box.h / 2, box.w, box.h, 10);
    pen.fillStyle = isDark() ? `rgba(255,255,255,0.035)` : `rgba(40,60,90,0.035)`; pen.fill();
    pen.lineWidth = line; pen.strokeStyle = isChosen(box) ? accent : isDark() ? "#414a54" : "#c3cad2"; pen.stroke();
    if (zoom * 12 >= 5) {
      pen.font = "600 12px system-ui, sans-serif"; pen.fillStyle = dim; pen.textAlign = "left"; pen.textBaseline = "middle";
      pen.fillText(`− ${short(state.graph.scopes[box.number].label)}`, box.x - box.w / 2 + 10, box.y - box.h / 2 + TITLE / 2 + 2, box.w - 20);
    }
  }
  const chosen = state.selected && state.scene.boxes.find(isChosen);
  const near = scene.links.filter((link) => isSeen(...link.reach));
  for (const kind of ["data", "control", "chosen"]) {
    pen.beginPath();
    for (const link of near) {
      const isNear = chosen && (link.source === chosen || link.target === chosen);
      if ((isNear ? "chosen" : link.control ? "control" : "data") === kind) trace(pen, link.path);
    }
    pen.setLineDash(kind === "control" ? [3, 4] : []);
    pen.lineWidth = kind === "chosen" ? 2 * line : line;
    pen.strokeStyle = kind === "chosen" ? accent : isDark() ? "#6b7682" : "#98a2ad";
    pen.stroke();
  }
  pen.setLineDash([]);
  if (!isFar) {
    pen.fillStyle = isDark() ? "#6b7682" : "#98a2ad";
    pen.beginPath();
    for (const link of near) {
      const [x1, y1] = link.path[link.path.length - 1], [, y0] = link.path[link.path.length - 2], side = y1 >= y0 ? -7 : 7;
      if (link.source === link.target) continue;
      pen.moveTo(x1, y1); pen.lineTo(x1 - 3.5, y1 + side); pen.lineTo(x1 + 3.5, y1 + side); pen.closePath();
    }
    pen.fill();
  }
  if (zoom >= 0.75) labels(near, dim);
  pen.textAlign = "center"; pen.textBaseline = "middle";
  for (const box of seen) {
    if (box.child) continue;
    const [fill, edge] = colorsOf(box), left = box.x - box.w / 2, top = box.y - box.h / 2;
    pen.fillStyle = fill; const isMarked = isChosen(box) || (state.way && box.kind === NODE && state.way.has(box.number));
    pen.strokeStyle = isMarked ? accent : edge; pen.lineWidth = isMarked ? 3 * line : line;
    if (isFar) { pen.fillRect(left, top, box.w, box.h); pen.strokeRect(left, top, box.w, box.h); continue; }
    pen.beginPath(); pen.roundRect(left, top, box.w, box.h, box.kind === NODE ? 7 : box.kind === SCOPE ? 4 : 9); pen.fill(); pen.stroke();
    if (zoom * 11 < 5) continue;
    pen.fillStyle = front;
    if (box.kind === ENTRY || box.kind === EXIT) {
      pen.font = "10px system-ui, sans-serif"; pen.fillStyle = dim;
      pen.fillText(box.kind === ENTRY ? "from outside" : "to outside", box.x, box.y, box.w - 8);
    } else {
      const [first, second] = wordsOf(box);
      pen.font = "600 12px system-ui, sans-serif"; pen.fillText(first, box.x, box.y - 7, box.w - 10);
      pen.font = "11px system-ui, sans-serif"; pen.fillStyle = isDark() ? "#c3cad2" : "#444c55";
      pen.fillText(second, box.x, box.y + 9, box.w - 10);
    }
  }
}

function wordsOf(box) {
  if (box.kind === NODE) { const node = state.graph.nodes[box.number]; return [short(node.op), short(within(node.name, state.graph.scopes[box.home].path))]; }
  const scope = state.graph.scopes[box.number];
  return [`${scope.canOpen ? "+ " : ""}${short(scope.label)}`, `${scope.nodes.toLocaleString("en")} nodes`];
}

// What an edge carries, beside it, where there is room and no other label.
function labels(links, color) {
  pen.font = "10px system-ui, sans-serif"; pen.textBaseline = "middle"; pen.textAlign = "left"; pen.fillStyle = color;
  const taken = [];
  for (const link of links) {
    const text = labelOf(link), last = link.path[link.path.length - 1], from = link.path[link.path.length - 2];
    if (!text || Math.abs(last[1] - from[1]) < 30) continue;
    const w = pen.measureText(text).width + 6, left = last[0] + 6, top = last[1] - (last[1] >= from[1] ? 18 : -18);
    if (taken.some(([l, t, r]) => left < r && left + w > l && Math.abs(top - t) < 12)) continue;
    taken.push([left, top, left + w]);
    pen.fillText(text, left, top);
  }
}
const labelOf = (link) => (link.count > 1 ? `${link.count} tensors` : short(link.label));
const isChosen = (box) => state.selected && box.kind === state.selected.kind && box.number === state.selected.number;

// The way around.
function fit() {
  const { width, height } = state.scene, w = canvas.clientWidth, h = canvas.clientHeight;
  state.zoom = Math.min(1.2, Math.max(0.02, Math.min((w - 40) / Math.max(width, 1), (h - 70) / Math.max(height, 1))));
  if (state.zoom < 0.5 && width * 0.5 < w) state.zoom = Math.min(0.8, (w - 40) / Math.max(width, 1));   // tall: begin at the top
  if (state.zoom < 0.6 && state.scene.boxes.length <= 60) state.zoom = 0.6;   // words before the whole
  const isTall = height * state.zoom > h - 40, top = state.scene.boxes.reduce((a, b) => (b.y < a.y ? b : a), { x: 0, y: Infinity });
  state.x = isTall && width * state.zoom > w ? w / 2 - top.x * state.zoom : (w - width * state.zoom) / 2;
  state.y = isTall ? 20 : (h - height * state.zoom) / 2;
  redraw();
}
function zoomAt(px, py, factor) {
  const zoom = Math.min(4, Math.max(0.01, state.zoom * factor));
  state.x = px - (px - state.x) * zoom / state.zoom;
  state.y = py - (py - state.y) * zoom / state.zoom;
  state.zoom = zoom;
  redraw();
}
function centre(box) {
  if (state.zoom < 0.7) state.zoom = 0.9;
  state.x = canvas.clientWidth / 2 - box.x * state.zoom;
  state.y = canvas.clientHeight / 2 - box.y * state.zoom;
  redraw();
}
// The shortest way along data and control edges from one node to another, as numbers of nodes; null when there is none.
function wayBetween(graph, from, to) {
  const before = new Map([[from, from]]), waiting = [from];
  for (const at of waiting) {
    if (at === to) break;
    for (const next of graph.nodes[at].readers) if (!before.has(next)) { before.set(next, at); waiting.push(next); }
  }
  if (!before.has(to)) return null;
  const way = [to];
  while (way[0] !== from) way.unshift(before.get(way[0]));
  return way;
}
function showWay(to) {
  const from = state.selected.number, { graph } = state;
  const way = wayBetween(graph, from, to) ?? wayBetween(graph, to, from);
  for (const number of way ?? [])
    for (let at = graph.home.get(number); at !== undefined && at >= 0; at = graph.scopes[at].parent) graph.opened.add(at);
  buildScene();
  select(NODE, to, true);
  state.way = way && new Set(way);
  const side = element("panel");
  side.replaceChildren();
  make("h2", way ? `${way.length} nodes from one to the other` : "No edges lead from one to the other", side);
  list("Way", (way ?? []).map(asEntry), side, 400);
  redraw();
}
function select(kind, number, isShown) {
  state.way = null;
  state.selected = kind === null ? null : { kind, number };
  panel();
  const box = state.selected && state.scene.boxes.find(isChosen);
  if (box && isShown) centre(box);
  redraw();
}
function toggle(number) {
  const before = state.scene.boxes.find((box) => box.kind === SCOPE && box.number === number), { opened } = state.graph;
  if (!state.graph.scopes[number].canOpen) return;
  if (opened.has(number)) opened.delete(number); else opened.add(number);
  const [x, y] = before ? [before.x, before.y - before.h / 2] : [0, 0];
  buildScene();
  const after = state.scene.boxes.find((box) => box.kind === SCOPE && box.number === number);
  if (before && after) { state.x += (x - after.x) * state.zoom; state.y += (y - (after.y - after.h / 2)) * state.zoom; }
  redraw();
}
function reveal(number) {
  for (let at = state.graph.home.get(number); at !== undefined && at >= 0; at = state.graph.scopes[at].parent) state.graph.opened.add(at);
  buildScene();
  select(NODE, number, true);
}
function show(graph) {
  state.graph = graph; state.selected = null;
  element("graphs").value = String(data.graphs.indexOf(graph));
  buildScene(); panel(); fit();
}
function openedAtFirst(graph) {
  // Opens what stands alone until there is something to see.
  for (let round = 0; round < 12; round++) {
    let count = 0;
    const closed = [], stack = [0];
    while (stack.length) {
      for (const [kind, number] of graph.scopes[stack.pop()].items) {
        count++;
        if (kind === SCOPE) (graph.opened.has(number) ? stack : closed).push(number);
      }
    }
    const next = closed.filter((number) => graph.scopes[number].canOpen && graph.scopes[number].items.length + count <= 40)
      .sort((a, b) => graph.scopes[b].nodes - graph.scopes[a].nodes)[0];
    if (next === undefined || count > 12) return;
    graph.opened.add(next);
  }
}

// The panel.
const make = (tag, text, parent) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
};
function list(title, entries, parent, most = 60) {
  if (!entries.length) return;
  make("h3", title, parent);
  const list = make("ul", undefined, parent);
  for (const [text, small, action, share] of entries.slice(0, most)) {
    const button = make("button", tail(text), make("li", undefined, list));
    button.title = text;
    if (small) { button.append(" "); make("small", small, button); }
    if (share) { const bar = make("span", undefined, button); bar.className = "share"; bar.style.width = `${100 * share}%`; }
    if (action) button.addEventListener("click", action); else button.disabled = true;
  }
  if (entries.length > most) make("p", `and ${entries.length - most} more`, parent).className = "dim";
}
function facts(rows, parent) {
  const table = make("table", undefined, parent);
  for (const [key, value] of rows) { const row = make("tr", undefined, table); make("td", key, row); make("td", value, row); }
}
const asEntry = (number) => { const node = state.graph.nodes[number]; return [node.name, node.op, () => reveal(number)]; };

function panel() {
  const side = element("panel"), graph = state.graph, chosen = state.selected;
  side.replaceChildren();
  if (chosen && chosen.kind === NODE) {
    const node = graph.nodes[chosen.number], total = graph.nodes.reduce((sum, one) => sum + one.microseconds, 0);
    make("h2", node.name, side);
    facts([["op", node.op], ["family", data.families[node.family][0]], ...(node.device ? [["device", node.device]] : []),
      ...node.outputs.map((text, port) => [`output ${port}`, text]),
      ...(node.weights ? [["weights", shownAs.weights(node.weights)]] : []),
      ...(node.memory ? [["outputs", shownAs.memory(node.memory)]] : []),
      ...(node.isCounted ? node.flops ? [["operations", shownAs.flops(node.flops)]] : [] : [["operations", "depend on shapes that are not known"]]),
      ...(node.calls ? [["time", `${shownAs.microseconds(node.microseconds)}, ${(100 * node.microseconds / total).toFixed(1)} % of the run, ${node.calls} ${node.calls === 1 ? "call" : "calls"} on ${node.engine}`]] : []),
    ], side);
    list("Inputs", node.inputs.map(([ref, source, carried]) => [ref, carried, source >= 0 ? () => reveal(source) : null]), side);
    list("Read by", [...new Set(node.readers)].map(asEntry), side);
    for (const [, text] of node.attributes)
      for (const target of data.graphs.filter((one) => one !== data.graphs[0] && text === `func(${one.name})` || text.startsWith(`func(${one.name},`)))
        list("Function", [[target.name, "", () => show(target)]], side);
    if (node.attributes.length) { make("h3", "Attributes", side); facts(node.attributes, side); }
    return;
  }
  if (chosen && chosen.kind === SCOPE) {
    const scope = graph.scopes[chosen.number];
    make("h2", scope.path, side);
    facts([["nodes", scope.nodes.toLocaleString("en")],
      ...Object.entries(METRICS).filter(([, pair]) => scope.sums[pair[1]]).map(([, pair]) => [pair[0], shownAs[pair[1]](scope.sums[pair[1]])])], side);
    if (!scope.canOpen) make("p", "What is in it is left out of this page, which would be too large.", side).className = "note";
    else make("button", graph.opened.has(scope.number) ? "Close" : "Open", side).addEventListener("click", () => { toggle(scope.number); panel(); });
    list("In it", scope.items.filter(([kind]) => kind === NODE).map(([, number]) => asEntry(number)), side);
    return;
  }
  for (const note of data.notes) make("p", note, side).className = "note";
  if (canvas.clientWidth < 700) make("p", data.summary, side).className = "dim";
  const query = element("search").value.trim().toLowerCase();
  if (query) {
    const found = graph.nodes.filter((node) => query.split(/\s+/).every((word) => node.text.includes(word)));
    make("h2", `${found.length.toLocaleString("en")} found`, side);
    list("Names, ops and shapes", found.map((node) => asEntry(node.number)), side, 200);
    return;
  }
  const used = Object.values(METRICS).filter(([, metric]) => graph.nodes.some((node) => node[metric] > 0));
  const [title, metric] = (state.color !== "family" && METRICS[state.color]) || used[0] || [null, null];
  if (metric) {
    const total = graph.nodes.reduce((sum, node) => sum + node[metric], 0);
    const worst = [...graph.nodes].sort((a, b) => b[metric] - a[metric]).filter((node) => node[metric] > 0).slice(0, 10);
    make("h2", `${shownAs[metric](total)} in all`, side);
    list(`Most ${title}`, worst.map((node) => [node.name, `${shownAs[metric](node[metric])}, ${(100 * node[metric] / total).toFixed(1)} %`,
      () => reveal(node.number), node[metric] / worst[0][metric]]), side);
  }
  const uncounted = graph.nodes.filter((node) => !node.isCounted).length;
  if (metric === "flops" && uncounted)
    make("p", `${uncounted.toLocaleString("en")} nodes are not counted: their shapes are not known before a run.`, side).className = "note";
  if (!graph.nodes.length) make("p", "This graph has no nodes.", side);
  make("h3", "Keys", side);
  facts([["/", "search"], ["arrows", "to inputs, readers, neighbours"], ["Enter", "opens or closes"], ["Shift+click", "the way from the chosen node to this one"], ["+ − 0", "zoom, fit"], ["Esc", "back to this list"]], side);
}

function legend() {
  const place = element("legend");
  place.replaceChildren();
  const entries = state.color === "family"
    ? data.families.filter((family, at) => state.graph.nodes.some((node) => node.family === at))
    : [["none", isDark() ? "#20252b" : "#ffffff"], [`most ${METRICS[state.color][0]}`, "#d9480f"]];
  for (const [name, color] of entries) {
    const entry = make("span", undefined, place);
    make("i", undefined, entry).style.background = color;
    entry.append(name);
  }
}

// Hands on it.
const boxAt = (px, py) => {
  const x = (px - state.x) / state.zoom, y = (py - state.y) / state.zoom;
  return state.scene.boxes.filter((box) => Math.abs(x - box.x) <= box.w / 2 && Math.abs(y - box.y) <= box.h / 2)
    .sort((a, b) => b.depth - a.depth)[0];
};
const fingers = new Map();
let moved = 0;
const at = (event) => { const place = canvas.getBoundingClientRect(); return [event.clientX - place.left, event.clientY - place.top]; };
canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); fingers.set(event.pointerId, at(event)); if (fingers.size === 1) moved = 0; });
canvas.addEventListener("pointermove", (event) => {
  const now = at(event), before = fingers.get(event.pointerId);
  if (!before) { hover(now); return; }
  moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
  if (fingers.size === 1) { state.x += now[0] - before[0]; state.y += now[1] - before[1]; redraw(); }
  else if (fingers.size === 2) {
    const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
    const factor = Math.hypot(now[0] - other[0], now[1] - other[1]) / Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1]));
    zoomAt((now[0] + other[0]) / 2, (now[1] + other[1]) / 2, factor);
  }
  fingers.set(event.pointerId, now);
});
const lift = (event) => {
  const wasOne = fingers.delete(event.pointerId) && fingers.size === 0;
  if (!wasOne || moved > 5 || event.type === "pointercancel") return;
  const box = boxAt(...at(event));
  if (!box) select(null);
  else if (box.kind === SCOPE) {
    const y = (at(event)[1] - state.y) / state.zoom;
    if (!box.child || y < box.y - box.h / 2 + TITLE + PAD / 2) toggle(box.number);
    select(SCOPE, box.number);
  } else if (box.kind === NODE) {
    if (event.shiftKey && state.selected && state.selected.kind === NODE && state.selected.number !== box.number) showWay(box.number);
    else select(NODE, box.number);
  }
};
canvas.addEventListener("pointerup", lift);
canvas.addEventListener("pointercancel", lift);
canvas.addEventListener("pointerleave", () => { element("tip").style.display = "none"; });
canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoomAt(...at(event), Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015))); }, { passive: false });
function hover([px, py]) {
  const box = boxAt(px, py), tip = element("tip");
  if (!box || box.kind > SCOPE || box.child) { tip.style.display = "none"; return; }
  const node = box.kind === NODE ? state.graph.nodes[box.number] : null;
  const name = node ? `${node.op}  ${node.name}${node.outputs.length ? `  → ${node.outputs.join(", ")}` : ""}` : state.graph.scopes[box.number].path;
  tip.textContent = name.length > 2000 ? `${name.slice(0, 2000)}…` : name;
  tip.style.display = "block";
  tip.style.left = `${Math.max(4, Math.min(px + 12, canvas.clientWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(4, Math.min(py + 16, canvas.clientHeight - tip.offsetHeight - 8))}px`;
}
function step(key) {
  const { scene, graph } = state, boxes = scene.boxes.filter((box) => box.kind <= SCOPE && !box.child);
  const here = state.selected && scene.boxes.find(isChosen);
  if (!here) { const first = [...boxes].sort((a, b) => a.y - b.y)[0]; if (first) select(first.kind, first.number, true); return; }
  const linked = scene.links.filter((link) => (key === "ArrowUp" ? link.target : link.source) === here)
    .map((link) => (key === "ArrowUp" ? link.source : link.target)).filter((box) => box.kind <= SCOPE);
  let next = linked[0];
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const sign = key === "ArrowLeft" ? -1 : 1;
    next = boxes.filter((box) => box.home === here.home && sign * (box.x - here.x) > 1)
      .sort((a, b) => Math.abs(a.y - here.y) * 3 + Math.abs(a.x - here.x) - Math.abs(b.y - here.y) * 3 - Math.abs(b.x - here.x))[0];
  } else if (!next && here.kind === NODE) {
    const node = graph.nodes[here.number], far = key === "ArrowUp" ? node.inputs.map((i) => i[1]).find((n) => n >= 0) : node.readers[0];
    if (far !== undefined) { reveal(far); return; }
  }
  if (next) select(next.kind, next.number, true);
}
canvas.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const middle = [canvas.clientWidth / 2, canvas.clientHeight / 2];
  if (event.key.startsWith("Arrow")) step(event.key);
  else if (event.key === "Enter" && state.selected && state.selected.kind === SCOPE) { toggle(state.selected.number); panel(); }
  else if (event.key === "+" || event.key === "=") zoomAt(...middle, 1.25);
  else if (event.key === "-") zoomAt(...middle, 0.8);
  else if (event.key === "0") fit();
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { element("search").value = ""; select(null); canvas.focus(); }
  else if (event.key === "/" && !["INPUT", "SELECT"].includes(document.activeElement.tagName)) { event.preventDefault(); element("search").focus(); }
});
element("search").addEventListener("input", () => { state.selected = null; panel(); redraw(); });
element("color").addEventListener("change", (event) => { state.color = event.target.value; legend(); select(null); });
element("graphs").addEventListener("change", (event) => { show(data.graphs[Number(event.target.value)]); legend(); });
element("theme").addEventListener("click", () => { document.documentElement.classList.toggle("dark"); legend(); redraw(); });
element("fit").addEventListener("click", fit);

// Files.
function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob); link.download = name; link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b-\u001f\ufffe\uffff]/g, "?");
function asSvg() {
  const { boxes, links, width, height } = state.scene, n = (value) => value.toFixed(1);
  const parts = [`<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -10 ${n(width + 20)} ${n(height + 20)}" font-family="sans-serif" text-anchor="middle">`];
  for (const box of boxes.filter((one) => one.child)) {
    parts.push(`<rect x="${n(box.x - box.w / 2)}" y="${n(box.y - box.h / 2)}" width="${n(box.w)}" height="${n(box.h)}" rx="10" fill="#28406010" stroke="#c3cad2"/>`,
      `<text x="${n(box.x - box.w / 2 + 10)}" y="${n(box.y - box.h / 2 + 16)}" font-size="12" text-anchor="start">${escaped(short(state.graph.scopes[box.number].label))}</text>`);
  }
  for (const link of links) {
    const path = { text: "", moveTo(x, y) { this.text += `M${n(x)} ${n(y)}`; }, bezierCurveTo(...p) { this.text += `C${p.map(n).join(" ")}`; } };
    trace(path, link.path);
    parts.push(`<path d="${path.text}" fill="none" stroke="#98a2ad"${link.control ? ' stroke-dasharray="3 4"' : ""}/>`);
  }
  for (const box of boxes.filter((one) => !one.child)) {
    const [fill, edge] = colorsOf(box);
    parts.push(`<rect x="${n(box.x - box.w / 2)}" y="${n(box.y - box.h / 2)}" width="${n(box.w)}" height="${n(box.h)}" rx="6" fill="${fill}" stroke="${edge}"/>`);
    if (box.kind > SCOPE) continue;
    const [first, second] = wordsOf(box);
    parts.push(`<text x="${n(box.x)}" y="${n(box.y - 3)}" font-size="12" font-weight="600">${escaped(first)}</text><text x="${n(box.x)}" y="${n(box.y + 12)}" font-size="11">${escaped(second)}</text>`);
  }
  return `${parts.join("\n")}\n</svg>\n`;
}
element("save").addEventListener("change", (event) => {
  if (event.target.value === "svg") download("graph.svg", new Blob([asSvg()], { type: "image/svg+xml" }));
  if (event.target.value === "png") canvas.toBlob((blob) => download("graph.png", blob));
  event.target.value = "";
});

// Begin.
for (const [key, [title, metric]] of Object.entries(METRICS))
  if (data.graphs.some((graph) => graph.nodes.some((node) => node[metric] > 0))) { const option = make("option", title, element("color")); option.value = key; }
data.graphs.forEach((graph, number) => { const option = make("option", short(graph.name), element("graphs")); option.value = String(number); });
element("graphs").hidden = data.graphs.length < 2;
if (matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.classList.add("dark");
data.graphs.forEach(openedAtFirst);
new ResizeObserver(redraw).observe(canvas);
show(data.graphs.find((graph) => graph.nodes.length) ?? data.graphs[0]);
legend();
window.pocketgraph = { state, asSvg, reveal, toggle, draw, fit, showWay };
