// The way around.
function fit() {
  const { width, height } = state.scene, w = state.canvas.clientWidth, h = state.canvas.clientHeight;
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
  state.x = state.canvas.clientWidth / 2 - box.x * state.zoom;
  state.y = state.canvas.clientHeight / 2 - box.y * state.zoom;
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
  look.from = null;
  const way = wayBetween(graph, from, to) ?? wayBetween(graph, to, from);
  for (const number of way ?? []) openTo(graph, number);
  buildScene();
  select(NODE, to, true);
  state.way = way && new Set(way);
  const side = element("panel");
  side.replaceChildren();
  make("h2", way ? `${counted(way.length, "node")} from one to the other` : "No edges lead from one to the other", side);
  list("Way", (way ?? []).map(asEntry), side, 400);
  redraw();
}
function select(kind, number, isShown) {
  if (look.from !== null && kind === NODE && look.from !== number && state.graph === look.graph) {   // the other end of a way
    state.selected = { kind: NODE, number: look.from }; showWay(number); return;
  }
  state.way = null;
  state.selected = kind === null ? null : { kind, number };
  if (kind === null) look.from = null;
  panel();
  showCounterpart();
  const box = state.selected && state.scene.boxes.find(isChosen);
  if (box && isShown) centre(box);
  redraw();
}
function toggle(number) {
  const before = state.scene.boxes.find((box) => box.kind === SCOPE && box.number === number), { opened } = state;
  if (!state.graph.scopes[number].canOpen) return;
  const isOpen = !opened.has(number), { path, label } = state.graph.scopes[number];
  if (isOpen) opened.add(number); else opened.delete(number);
  for (const other of panes.filter((pane) => pane !== state)) {   // the same box in the other picture
    const twin = other.graph.scopes.find((scope) => scope.path === path && scope.label === label && scope.canOpen && scope.items.length);
    if (!twin || other.opened.has(twin.number) === isOpen) continue;
    if (isOpen) other.opened.add(twin.number); else other.opened.delete(twin.number);
    const here = state;
    state = other; buildScene(); state = here;
  }
  const [x, y] = before ? [before.x, before.y - before.h / 2] : [0, 0];
  buildScene();
  const after = state.scene.boxes.find((box) => box.kind === SCOPE && box.number === number);
  if (before && after) { state.x += (x - after.x) * state.zoom; state.y += (y - (after.y - after.h / 2)) * state.zoom; }
  redraw();
}
function reveal(number) {
  openTo(state.graph, number);
  buildScene();
  select(NODE, number, true);
}
// The node of the same name in the other picture, where there are two.
function showCounterpart() {
  const other = panes.find((pane) => pane !== state);
  if (!other) return;
  const chosen = state.selected, here = state, name = chosen && chosen.kind === NODE ? state.graph.nodes[chosen.number].name : null;
  const path = chosen && chosen.kind === SCOPE ? state.graph.scopes[chosen.number] : null;
  const number = name !== null ? other.graph.nodes.findIndex((node) => node.name === name)
    : path ? other.graph.scopes.findIndex((scope) => scope.path === path.path && scope.label === path.label && scope.items.length) : -1;
  other.way = null;
  other.selected = number < 0 ? null : { kind: chosen.kind, number };
  state = other;
  if (number >= 0 && name !== null && !state.scene.boxes.some(isChosen)) { openTo(state.graph, number); buildScene(); }
  const box = other.selected && state.scene.boxes.find(isChosen);
  if (box) centre(box);
  state = here;
}
function show(graph) {
  Object.assign(state, { graph, opened: graph.opened, selected: null, way: null });
  if (panes.length === 1) element("graphs").value = String(data.graphs.indexOf(graph));
  buildScene(); panel(); fit();
}
// One step of a chain: the graph before it on one side, the graph after it on the other.
function showStep(number) {
  const [name, before, after, left, right, counts] = data.steps[number];
  look.step = number;
  [[before, left, "before"], [after, right, "after"]].forEach(([at, changed, side], which) => {
    state = panes[which];
    const graph = data.graphs[at];
    state.changes = new Map(Object.entries(changed).map(([key, value]) => [Number(key), value]));
    state.changedIn = new Map();
    for (const key of state.changes.keys()) scopesAround(graph, key, (scope) => state.changedIn.set(scope.number, (state.changedIn.get(scope.number) ?? 0) + 1));
    state.caption.textContent = `${side}: ${graph.name}`;
    Object.assign(state, { graph, opened: graph.opened, selected: null, way: null });
    buildScene(); fit();
  });
  state = panes[0];
  element("steps").value = String(number);
  panel(); legend();
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
// A press is for the picture that the panel tells of, whichever the pointer has touched on its way.
const pressed = (button, action) => { const pane = state; button.addEventListener("click", () => { state = pane; action(); }); };
function list(title, entries, parent, most = 60) {
  if (!entries.length) return;
  make("h3", title, parent);
  const list = make("ul", undefined, parent);
  for (const [text, small, action, share] of entries.slice(0, most)) {
    const button = make("button", tail(text), make("li", undefined, list));
    button.title = small ? `${text}\n${small}` : text; button.dir = "auto";
    if (small) { button.append(" "); make("small", small, button); }
    if (share) { const bar = make("span", undefined, button); bar.className = "share"; bar.style.width = `${100 * share}%`; }
    if (action) pressed(button, action); else button.disabled = true;
  }
  if (entries.length > most) make("p", `and ${entries.length - most} more`, parent).className = "dim";
}
function facts(rows, parent) {
  const table = make("table", undefined, parent);
  for (const [key, value] of rows) { const row = make("tr", undefined, table); make("td", key, row); make("td", value, row).dir = "auto"; }
  return table;
}
const asEntry = (number) => { const node = state.graph.nodes[number]; return [node.name, node.op, () => reveal(number)]; };

// How often each weight occurs, in a few bars.
function drawHistogram([bars, low, high, mean, deviation, zeros], parent) {
  const space = "http://www.w3.org/2000/svg", most = Math.max(...bars), svg = document.createElementNS(space, "svg");
  make("h3", "Weights", parent);
  svg.setAttribute("viewBox", "0 0 240 48"); svg.setAttribute("class", "bars"); svg.setAttribute("role", "img"); svg.setAttribute("aria-label", "histogram of the weights");
  bars.forEach((bar, at) => {
    const rect = document.createElementNS(space, "rect"), height = Math.max(bar ? 1 : 0, 46 * bar / most);
    for (const [key, value] of Object.entries({ x: at * 10, y: 48 - height, width: 9, height })) rect.setAttribute(key, String(value));
    svg.append(rect);
  });
  parent.append(svg);
  facts([["from, to", `${low} … ${high}`], ["mean", `${mean}, deviation ${deviation}`], ...(zeros ? [["zeros", `${(100 * zeros).toFixed(1)} %`]] : [])], parent);
}

// What is different between two graphs, by kind, with the rules that did it.
function differences(side) {
  const [name, , , , , counts] = data.steps[look.step];
  make("h2", name, side);
  const table = facts(KINDS.map((kind, at) => [kind, counts[at].toLocaleString("en")]), side);
  KINDS.forEach((kind, at) => table.rows[at].classList.add("change", kind));
  make("p", "of all nodes, those that are folded into their readers too", side).className = "dim";
  KINDS.forEach((kind, at) => {
    const pane = panes[kind === "vanished" ? 0 : 1], here = [...pane.changes].filter(([, [which]]) => which === at);
    list(kind, here.map(([number, [, how, rule]]) => [pane.graph.nodes[number].name, rule || how, () => { state = pane; reveal(number); }]), side);
  });
  if (!counts.some((count) => count)) make("p", "Nothing is different.", side);
}

function panel() {
  const side = element("panel"), graph = state.graph, chosen = state.selected;
  side.replaceChildren();
  side.scrollTop = 0;
  if (chosen && chosen.kind === NODE) {
    const node = graph.nodes[chosen.number], total = graph.nodes.reduce((sum, one) => sum + one.microseconds, 0);
    make("h2", node.name, side).dir = "auto";
    const change = state.changes.get(node.number);
    if (change) {
      const box = make("p", undefined, side), [kind, how, rule] = change;
      box.className = `change ${KINDS[kind]}`;
      make("b", KINDS[kind], box);
      box.append(`${rule ? ` by ${rule}` : ""}${how ? `: ${how}` : ""}`);
    }
    facts([["op", node.op], ["family", data.families[node.family][0]], ...(node.device ? [["device", node.device]] : []),
      ...node.outputs.map((text, port) => [`output ${port}`, text]),
      ...(node.weights ? [["weights", shownAs.weights(node.weights)]] : []),
      ...(node.memory ? [["outputs", shownAs.memory(node.memory)]] : []),
      ...(node.isCounted ? node.flops ? [["operations", shownAs.flops(node.flops)]] : [] : [["operations", "depend on shapes that are not known"]]),
      ...(node.engine ? [["runs on", { litert: "LiteRT", "litert when it runs": "LiteRT, when it runs", reference: "the reference engine (NumPy)" }[node.engine] ?? node.engine]] : []),
      ...(node.reason ? [["not LiteRT", node.reason]] : []),
      ...(node.calls ? [["time", `${shownAs.microseconds(node.microseconds)}, ${(100 * node.microseconds / total).toFixed(1)} % of the run, ${node.calls} ${node.calls === 1 ? "call" : "calls"}`]] : []),
    ], side);
    const way = make("button", look.from === node.number ? "now choose the other node" : "way to another node", side);
    pressed(way, () => { Object.assign(look, { from: node.number, graph }); way.textContent = "now choose the other node"; });
    if (node.bars) drawHistogram(node.bars, side);
    if (node.bits) { make("h3", "In eight bits", side); facts(node.bits, side); }
    list("Inputs", node.inputs.map(([ref, source, carried]) => [ref, carried, source >= 0 ? () => reveal(source) : null]), side);
    list("Read by", [...new Set(node.readers)].map(asEntry), side);
    list("Functions", data.graphs.slice(1).filter((one) => one.name === node.op || node.functions.includes(one.name)).map((one) => [one.name, "", () => show(one)]), side);
    if (node.attributes.length) { make("h3", "Attributes", side); facts(node.attributes, side); }
    return;
  }
  if (chosen && chosen.kind === SCOPE) {
    const scope = graph.scopes[chosen.number];
    make("h2", scope.copies > 1 ? `${scope.label} × ${scope.copies}` : scope.path || scope.label, side);
    if (scope.copies > 1) make("p", `${scope.copies} copies in a row that differ in numbers only${scope.path ? `, in ${scope.path}` : ""}.`, side);
    const { changedIn } = state;
    facts([["nodes", scope.nodes.toLocaleString("en")], ...(changedIn.get(scope.number) ? [["differ", `${changedIn.get(scope.number)}`]] : []),
      ...Object.entries(METRICS).filter(([, pair]) => scope.sums[pair[1]]).map(([, pair]) => [pair[0], shownAs[pair[1]](scope.sums[pair[1]])])], side);
    if (!scope.canOpen) make("p", "What is in it is left out of this page, which would be too large.", side).className = "note";
    else pressed(make("button", state.opened.has(scope.number) ? "Close" : "Open", side), () => { toggle(scope.number); panel(); });
    list("In it", scope.items.filter(([kind]) => kind === NODE).map(([, number]) => asEntry(number)), side);
    return;
  }
  for (const note of data.notes) make("p", note, side).className = "note";
  if (window.innerWidth < 1100) make("p", data.summary, side).className = "dim";
  if (look.step !== null && !METRICS[look.color] && look.color !== "engine" && !element("search").value.trim()) { differences(side); return; }
  const query = element("search").value.trim().toLowerCase();
  if (query) {
    const seen = new Set(), words = query.split(/\s+/);
    const found = panes.flatMap((pane, side) => pane.graph.nodes.filter((node) => words.every((word) => node.text.includes(word)) && !seen.has(node.name))
      .map((node) => { seen.add(node.name); return [node.name, panes.length > 1 ? `${node.op}, ${side ? "after" : "before"}` : node.op, () => { state = pane; reveal(node.number); }]; }));
    make("h2", `${found.length.toLocaleString("en")} found`, side);
    list("Names, ops and shapes", found, side, 200);
    return;
  }
  const waste = look.color === "engine" && graph.nodes.filter((node) => node.reason);
  if (waste && waste.length) {
    make("h2", `${waste.length.toLocaleString("en")} nodes do not run on LiteRT`, side);
    const reasons = new Map();
    for (const node of waste) reasons.set(node.reason, [...(reasons.get(node.reason) ?? []), node]);
    list("Why", [...reasons].sort((a, b) => b[1].length - a[1].length).map(([reason, nodes]) => [reason, counted(nodes.length, "node"), () => reveal(nodes[0].number), nodes.length / waste.length]), side);
  }
  const used = Object.values(METRICS).filter(([, metric]) => graph.nodes.some((node) => node[metric] > 0));
  const [title, metric] = METRICS[look.color] || used[0] || [null, null];
  if (metric) {
    const total = graph.nodes.reduce((sum, node) => sum + node[metric], 0);
    const worst = [...graph.nodes].sort((a, b) => b[metric] - a[metric]).filter((node) => node[metric] > 0).slice(0, 10);
    make("h2", metric === "sensitivity" ? "What eight bits hurt most" : `${shownAs[metric](total)} in all`, side);
    if (metric === "sensitivity") make("p", "Decibels left of the model's results when only this tensor is in eight bits: the fewer, the worse.", side).className = "dim";
    list(`Most ${title}`, worst.map((node) => [node.name, metric === "sensitivity" ? shownAs.sensitivity(node.sensitivity) : `${shownAs[metric](node[metric])}, ${(100 * node[metric] / total).toFixed(1)} %`,
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
  for (const [name, color] of legendEntries()) {
    const entry = make("span", undefined, place);
    make("i", undefined, entry).style.background = color;
    entry.append(name);
  }
}

