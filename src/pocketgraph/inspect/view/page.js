// Hands on it.
const boxAt = (px, py) => {
  const x = (px - state.x) / state.zoom, y = (py - state.y) / state.zoom;
  return state.scene.boxes.filter((box) => Math.abs(x - box.x) <= box.w / 2 && Math.abs(y - box.y) <= box.h / 2)
    .sort((a, b) => b.depth - a.depth)[0];
};
let moved = 0;
const at = (event) => { const place = state.canvas.getBoundingClientRect(); return [event.clientX - place.left, event.clientY - place.top]; };
for (const pane of panes) {
  const { canvas } = pane, fingers = new Map();
  const on = (name, action, options) => canvas.addEventListener(name, (event) => {
    const touched = state;
    state = pane; action(event);
    if (name === "pointermove" && !fingers.size) state = touched;   // to pass over a picture is not to touch it
  }, options);
  on("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); fingers.set(event.pointerId, at(event)); if (fingers.size === 1) moved = 0; });
  on("pointermove", (event) => {
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
    if (wasOne && moved <= 5 && event.type !== "pointercancel") clicked(boxAt(...at(event)), event);
  };
  on("pointerup", lift);
  on("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => { element("tip").style.display = "none"; });
  on("wheel", (event) => { event.preventDefault(); zoomAt(...at(event), Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015))); }, { passive: false });
  on("focus", () => {});
  on("keydown", typed);
  new ResizeObserver(redraw).observe(canvas);
}
function clicked(box, event) {
  if (!box) select(null);
  else if (box.kind === SCOPE) {
    const y = (at(event)[1] - state.y) / state.zoom;
    if (!box.child || y < box.y - box.h / 2 + TITLE + PAD / 2) toggle(box.number);
    select(SCOPE, box.number);
  } else if (box.kind === NODE) {
    if (event.shiftKey && state.selected && state.selected.kind === NODE && state.selected.number !== box.number) showWay(box.number);
    else select(NODE, box.number);
  }
}
function hover([px, py]) {
  const box = boxAt(px, py), tip = element("tip"), { canvas } = state;
  if (!box || box.kind > SCOPE || box.child) { tip.style.display = "none"; return; }
  const node = box.kind === NODE ? state.graph.nodes[box.number] : null;
  const name = node ? `${node.op}  ${node.name}${node.outputs.length ? `  → ${node.outputs.join(", ")}` : ""}` : state.graph.scopes[box.number].path;
  tip.textContent = name.length > 2000 ? `${name.slice(0, 2000)}…` : name;
  tip.style.display = "block";
  const place = canvas.getBoundingClientRect(), stage = element("stage").getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(place.left - stage.left + px + 12, stage.width - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(4, Math.min(place.top - stage.top + py + 16, stage.height - tip.offsetHeight - 8))}px`;
}
function step(key) {
  const { scene, graph } = state, boxes = scene.boxes.filter((box) => box.kind <= SCOPE && !box.child);
  const here = state.selected && scene.boxes.find(isChosen);
  if (!here) { const first = [...boxes].sort((a, b) => a.y - b.y)[0]; if (first) select(first.kind, first.number, true); return; }
  const isUp = key === "ArrowUp";
  const linked = (from) => scene.links.filter((link) => (isUp ? link.target : link.source) === from)
    .map((link) => (isUp ? link.source : link.target)).find((box) => box.kind <= SCOPE);
  let next = here.child ? scene.boxes.filter((box) => box.kind <= SCOPE && box.home === here.number)
    .reduce((a, b) => ((isUp ? b.y > a.y : b.y < a.y) ? b : a)) : linked(here);   // into an open box, else along an edge
  for (let around = here; !next && here.kind === SCOPE && around.home;) {   // and out of the boxes around a closed one
    const { home } = around;
    around = scene.boxes.find((box) => box.child && box.number === home);
    next = linked(around);
  }
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
function typed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const middle = [state.canvas.clientWidth / 2, state.canvas.clientHeight / 2];
  if (event.key.startsWith("Arrow")) step(event.key);
  else if (event.key === "Enter" && state.selected && state.selected.kind === SCOPE) { toggle(state.selected.number); panel(); }
  else if (event.key === "+" || event.key === "=") zoomAt(...middle, 1.25);
  else if (event.key === "-") zoomAt(...middle, 0.8);
  else if (event.key === "0") fit();
  else return;
  event.preventDefault();
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { element("search").value = ""; select(null); state.canvas.focus(); }
  else if (event.key === "/" && !["INPUT", "SELECT"].includes(document.activeElement.tagName)) { event.preventDefault(); element("search").focus(); }
});
const setDark = (isSet) => { document.body.classList.toggle("dark", isSet); legend(); redraw(); };
const both = (action) => { const touched = state; for (const pane of panes) { state = pane; action(); } state = touched; };
element("search").addEventListener("input", () => { both(() => { state.selected = null; }); panel(); redraw(); });
element("color").addEventListener("change", (event) => { look.color = event.target.value; legend(); select(null); });
element("graphs").addEventListener("change", (event) => { show(data.graphs[Number(event.target.value)]); legend(); });
element("steps").addEventListener("change", (event) => showStep(Number(event.target.value)));
element("theme").addEventListener("click", () => setDark(!isDark()));
element("fit").addEventListener("click", () => both(fit));
let wasDark = false;   // paper is white
window.addEventListener("beforeprint", () => { wasDark = isDark(); setDark(false); draw(); });
window.addEventListener("afterprint", () => setDark(wasDark));

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
      `<text x="${n(box.x - box.w / 2 + 10)}" y="${n(box.y - box.h / 2 + 16)}" font-size="12" text-anchor="start">${escaped(scopeWords(state.graph.scopes[box.number]))}</text>`);
  }
  for (const link of links) {
    const path = { text: "", moveTo(x, y) { this.text += `M${n(x)} ${n(y)}`; }, bezierCurveTo(...p) { this.text += `C${p.map(n).join(" ")}`; } };
    trace(path, link.path);
    parts.push(`<path d="${path.text}" fill="none" stroke="#98a2ad"${link.control ? ' stroke-dasharray="3 4"' : ""}/>`);
  }
  for (const box of boxes.filter((one) => !one.child)) {
    const [fill, edge] = colorsOf(box);
    if (box.kind === NODE && state.graph.nodes[box.number].role === BRANCH) {
      const shape = { text: "", moveTo(x, y) { this.text += `M${n(x)} ${n(y)}`; }, lineTo(x, y) { this.text += `L${n(x)} ${n(y)}`; }, beginPath() {}, closePath() { this.text += "Z"; } };
      outline(shape, box, box.x - box.w / 2, box.y - box.h / 2);
      parts.push(`<path d="${shape.text}" fill="${fill}" stroke="${edge}"/>`);
    } else parts.push(`<rect x="${n(box.x - box.w / 2)}" y="${n(box.y - box.h / 2)}" width="${n(box.w)}" height="${n(box.h)}" rx="6" fill="${fill}" stroke="${edge}"/>`);
    if (box.kind > SCOPE) continue;
    const [first, second] = wordsOf(box);
    parts.push(`<text x="${n(box.x)}" y="${n(box.y - 3)}" font-size="12" font-weight="600">${escaped(first)}</text><text x="${n(box.x)}" y="${n(box.y + 12)}" font-size="11">${escaped(second)}</text>`);
  }
  return `${parts.join("\n")}\n</svg>\n`;
}
element("save").addEventListener("change", (event) => {
  if (event.target.value === "svg") download("graph.svg", new Blob([asSvg()], { type: "image/svg+xml" }));
  if (event.target.value === "png") state.canvas.toBlob((blob) => download("graph.png", blob));
  event.target.value = "";
});

// Begin.
for (const [key, title] of colorings()) make("option", title, element("color")).value = key;
element("color").value = look.color;
data.graphs.forEach((graph, number) => { const option = make("option", short(graph.name), element("graphs")); option.value = String(number); });
data.steps.forEach(([name], number) => { const option = make("option", `${data.steps.length > 1 && number ? `${number} ` : ""}${short(name, 60)}`, element("steps")); option.value = String(number); });
element("graphs").hidden = data.graphs.length < 2 || panes.length > 1;
element("steps").hidden = data.steps.length < 2;
if (matchMedia("(prefers-color-scheme: dark)").matches) document.body.classList.add("dark");
data.graphs.forEach(openedAtFirst);
if (data.steps.length) showStep(0); else show(data.graphs.find((graph) => graph.nodes.length) ?? data.graphs[0]);
legend();
window.pocketgraph = { get state() { return state; }, panes, look, data, asSvg, reveal, toggle, draw, fit, showWay, showStep, select };
