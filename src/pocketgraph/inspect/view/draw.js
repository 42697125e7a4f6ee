const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

// Colours.
const isDark = () => document.body.classList.contains("dark");
const mixed = (a, b, share) => {
  const parts = [1, 3, 5].map((i) => Math.round(parseInt(a.slice(i, i + 2), 16) * share + parseInt(b.slice(i, i + 2), 16) * (1 - share)));
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
};
const HEAT = "#d9480f", NEUTRAL = "#8a94a0", LOOPED = "#c678c9";
const CHANGE_COLORS = { vanished: "#d1453b", came: "#2f9e5b", changed: "#c98a1b", rewired: "#3b7dd8" };
const ENGINE_COLORS = { litert: "#3b7dd8", "litert when it runs": "#58b09c", reference: "#d9822b", "": "#8a94a0" };
const engineOf = (node) => (node.engine in ENGINE_COLORS ? node.engine : node.engine ? "reference" : "");
function colorsOf(box) {
  const base = isDark() ? "#20252b" : "#ffffff", edge = isDark() ? "#4d5661" : "#b9c0c8", { graph } = state;
  if (box.kind === ENTRY || box.kind === EXIT) return [base, edge];
  const filled = (color, share) => [mixed(color, base, share ?? (isDark() ? 0.38 : 0.5)), color];
  const node = box.kind === NODE ? graph.nodes[box.number] : null;
  if (look.color === "family") return node ? filled(data.families[node.family][1]) : filled(NEUTRAL, 0.16);
  if (look.color === "engine") return node ? filled(ENGINE_COLORS[engineOf(node)], engineOf(node) ? undefined : 0.12) : filled(NEUTRAL, 0.16);
  if (look.color === "change") {
    if (node) { const change = state.changes.get(node.number); return change ? filled(CHANGE_COLORS[KINDS[change[0]]]) : [base, edge]; }
    const count = state.changedIn.get(box.number) ?? 0;
    return count ? filled(CHANGE_COLORS.changed, 0.1 + 0.25 * Math.min(1, count / graph.scopes[box.number].nodes)) : [base, edge];
  }
  const metric = METRICS[look.color][1], value = node ? node[metric] : graph.scopes[box.number].sums[metric];
  const share = Math.min(1, (value / graph.most[metric]) ** (metric === "sensitivity" ? 2 : 0.5));
  return value ? [mixed(HEAT, base, 0.08 + 0.72 * share), HEAT] : [base, edge];
}
const colorings = () => [["family", "op family"], ...(data.steps.length ? [["change", "what changed"]] : []),
  ...(data.graphs.some((graph) => graph.nodes.some((node) => node.engine || node.reason)) ? [["engine", "engine"]] : []),
  ...Object.entries(METRICS).filter(([, [, metric]]) => data.graphs.some((graph) => graph.nodes.some((node) => node[metric] > 0))).map(([key, [title]]) => [key, title])];
function legendEntries() {
  if (look.color === "family") return data.families.filter((family, at) => panes.some((pane) => pane.graph.nodes.some((node) => node.family === at)));
  if (look.color === "change") return Object.entries(CHANGE_COLORS);
  if (look.color === "engine") return Object.entries(ENGINE_COLORS).filter(([engine]) => panes.some((pane) => pane.graph.nodes.some((node) => engineOf(node) === engine)))
    .map(([engine, color]) => [{ litert: "LiteRT", "litert when it runs": "LiteRT, when it runs", reference: "reference engine (NumPy)", "": "computed before the run, or not needed" }[engine], color]);
  return [["none", isDark() ? "#20252b" : "#ffffff"], [`most ${METRICS[look.color][0]}`, HEAT]];
}

// Drawing.
let waiting = false;
const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };

function trace(to, path, isStraight) {
  to.moveTo(path[0][0], path[0][1]);
  for (let i = 1; i < path.length; i++) {
    if (isStraight) { to.lineTo(path[i][0], path[i][1]); continue; }
    const [x0, y0] = path[i - 1], [x1, y1] = path[i], middle = (y0 + y1) / 2;
    to.bezierCurveTo(x0, middle, x1, middle, x1, y1);
  }
}

function draw() {
  waiting = false;
  const touched = state;
  for (const pane of panes) { state = pane; drawPane(); }
  state = touched;
}

function drawPane() {
  const { canvas, pen } = state, ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  }
  const { zoom, x, y, scene } = state, style = getComputedStyle(document.body);
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
      pen.fillText(`− ${scopeWords(state.graph.scopes[box.number])}`, box.x - box.w / 2 + 10, box.y - box.h / 2 + TITLE / 2 + 2, box.w - 20);
    }
  }
  const chosen = state.selected && scene.boxes.find(isChosen);
  const near = scene.links.filter((link) => isSeen(...link.reach));
  for (const kind of ["data", "control", "back", "chosen"]) {
    pen.beginPath();
    for (const link of near) {
      const isNear = chosen && (link.source === chosen || link.target === chosen);
      if ((isNear ? "chosen" : link.control ? "control" : link.isBack ? "back" : "data") === kind) trace(pen, link.path, isFar);
    }
    pen.setLineDash(kind === "control" ? [3, 4] : []);
    pen.lineWidth = kind === "chosen" || kind === "back" ? 2 * line : line;
    pen.strokeStyle = kind === "chosen" ? accent : kind === "back" ? LOOPED : isDark() ? "#6b7682" : "#98a2ad";
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
    if (isFar) {
      pen.fillRect(left, top, box.w, box.h);
      if (isMarked || zoom > 0.12) pen.strokeRect(left, top, box.w, box.h);
      continue;
    }
    outline(pen, box, left, top); pen.fill(); pen.stroke();
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

// The shape of a box says what it is: nodes are round, branches have pointed sides, groups of repeats are stacked.
function outline(to, box, left, top) {
  const scope = box.kind === SCOPE ? state.graph.scopes[box.number] : null;
  if (scope && scope.copies > 1 && to.strokeRect) {
    to.strokeRect(left + 6, top - 6, box.w, box.h); to.fillRect(left + 6, top - 6, box.w, box.h);
    to.strokeRect(left + 3, top - 3, box.w, box.h); to.fillRect(left + 3, top - 3, box.w, box.h);
  }
  to.beginPath();
  if (box.kind === NODE && state.graph.nodes[box.number].role === BRANCH) {
    const tip = 9, right = left + box.w, bottom = top + box.h;
    to.moveTo(left + tip, top); to.lineTo(right - tip, top); to.lineTo(right, box.y); to.lineTo(right - tip, bottom); to.lineTo(left + tip, bottom); to.lineTo(left, box.y); to.closePath();
  } else to.roundRect(left, top, box.w, box.h, box.kind === NODE ? 7 : box.kind === SCOPE ? 4 : 9);
}
const scopeWords = (scope) => `${scope.hasLoop ? "↻ " : ""}${short(scope.label)}${scope.copies > 1 ? ` × ${scope.copies}` : ""}`;
function wordsOf(box) {
  if (box.kind === NODE) {
    const node = state.graph.nodes[box.number];
    return [(node.role === LOOP || node.role === BACK ? "↻ " : "") + short(node.op), short(within(node.name, state.graph.scopes[box.home].path))];
  }
  const scope = state.graph.scopes[box.number], changed = look.color === "change" && state.changedIn.get(box.number);
  return [`${scope.canOpen ? "+ " : ""}${scopeWords(scope)}`, `${counted(scope.nodes, "node")}${changed ? `, ${changed} differ` : ""}`];
}

// What an edge carries, beside it, where there is room and no other label.
function labels(links, color) {
  const { pen } = state;
  pen.lineWidth = 3; pen.lineJoin = "round"; pen.strokeStyle = isDark() ? "#15181c" : "#fbfbfc";   // so that lines do not cross letters
  pen.font = "10px system-ui, sans-serif"; pen.textBaseline = "middle"; pen.textAlign = "left"; pen.fillStyle = color;
  const taken = [];
  for (const link of links) {
    const text = labelOf(link), last = link.path[link.path.length - 1], from = link.path[link.path.length - 2];
    if (!text || Math.abs(last[1] - from[1]) < 30) continue;
    const w = pen.measureText(text).width + 6, left = last[0] + 6, top = last[1] - (last[1] >= from[1] ? 18 : -18);
    if (taken.some(([l, t, r]) => left < r && left + w > l && Math.abs(top - t) < 12)) continue;
    taken.push([left, top, left + w]);
    pen.strokeText(text, left, top); pen.fillText(text, left, top);
  }
}
const labelOf = (link) => (link.count > 1 ? `${link.count} tensors` : short(link.label));
const isChosen = (box) => state.selected && box.kind === state.selected.kind && box.number === state.selected.number;

