// Photos one after the other, a key a class. A decision waits here, and in the browser's store, until it is on the disk.
import { Drafts } from "./drafts.js";
import { Outbox } from "./outbox.js";
import { Panel } from "./panel.js";

const $ = (id) => document.getElementById(id);
const RESERVED = "uszd";
const KEYS = [..."1234567890", ..."abcdefghijklmnopqrstuvwxyz"].filter((key) => !RESERVED.includes(key));
const token = new URLSearchParams(location.search).get("token");
const address = (path) => `${path}?${new URLSearchParams({ ...(token ? { token } : {}), ...(about ? { order: about.order } : {}) })}`;

let about, outbox, drafts, panels = [], at = 0, history = [], current = 0, disputes = null;
let drawn = [];     // boxes of the photo on the stage, in shares of its width and height

function tell(text) { $("message").textContent = text; $("message").hidden = !text; }

async function start() {
  const reply = await fetch(address("about"));
  if (!reply.ok) { tell(await reply.text()); return; }
  about = await reply.json();
  document.body.classList.toggle("boxes", about.boxes);
  document.title = $("name").textContent = `Labels of ${about.folder}`;
  $("rater").textContent = about.rater;
  history = about.history;
  outbox = new Outbox(`pocketgraph-labels-${about.session}`, address("decide"), tell);
  drafts = new Drafts(`pocketgraph-boxes-${about.session}`);
  const numbers = new Map(about.photos.map((photo, number) => [photo.path, number]));
  for (const told of outbox.waiting()) {          // of a page that was closed while the server was away
    const number = numbers.get(told.path);
    if (number === undefined || told.settles) continue;
    about.photos[number].said = told.decision === "undo" ? null : told;
    if (told.decision !== "undo") history.push(number);
    else history = history.filter((other) => other !== number);
  }
  outbox.send();
  about.classes.forEach((label, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.style.setProperty("--hue", hue(label));
    if (KEYS[place]) button.append(Object.assign(document.createElement("kbd"), { textContent: KEYS[place] }));
    button.append(Object.assign(document.createElement("span"), { textContent: label }));
    button.addEventListener("click", () => { choose(place); button.blur(); });
    $("classes").append(button);
  });
  $("hint").textContent = about.boxes
    ? "Drag a box; a key chooses its class. Backspace removes the last one, ← and → look around, the wheel zooms."
    : "← and → look around, the wheel zooms where the mouse is, dragging moves.";
  at = next(-1);
  show();
}

function hue(label) { return `hsl(${(about.classes.indexOf(label) * 137.5) % 360} 85% 55%)`; }

function boxesOf(said) { return `${said.boxes.length} ${said.boxes.length === 1 ? "box" : "boxes"}`; }

function next(after) {
  const open = (number) => !about.photos[number].said;
  for (let i = 1; i <= about.photos.length; i++) {
    const number = (after + i + about.photos.length) % about.photos.length;
    if (open(number)) return number;
  }
  return about.photos.length;
}

function list() { return disputes ? disputes.photos.map((photo) => photo.number) : about.photos.map((_, number) => number); }

function show() {
  const photos = about.photos, place = disputes ? list()[at] : at, photo = photos[place];
  const judged = photos.filter((one) => one.said).length, skipped = photos.filter((one) => one.said?.decision === "skip").length;
  $("progress").max = photos.length;
  $("progress").value = judged;
  $("count").textContent = disputes ? `${Math.min(at + 1, list().length)} of ${list().length} disputed`
    : `${judged} of ${photos.length}${skipped ? `, ${skipped} skipped` : ""}`;
  $("stage").replaceChildren();
  panels = [];
  drawn = [];
  $("path").textContent = photo ? photo.path : "";
  $("said").textContent = "";
  if (!photo) { finished(skipped); mark(null); return; }
  const views = disputes ? disputes.photos[at].said : [null];
  for (const view of views) {
    const panel = new Panel($("stage"), address(`photo/${place}`), about.boxes && (!disputes || view === views[0]));
    panel.onbox = (box) => { drawn.push({ label: about.classes[current], box }); keep(); };
    panel.onbroken = () => broken(place);
    panel.onready = redraw;
    if (view) panel.caption(`${view.rater}: ${view.decision === "boxes" ? boxesOf(view) : view.label ?? view.decision}`);
    panel.view = view;
    panels.push(panel);
  }
  const said = disputes ? null : photo.said;
  if (about.boxes && drafts.of(drafted())) $("said").textContent = NOT_YET;
  else if (said) $("said").textContent = said.decision === "skip" ? "skipped" : said.decision === "label" ? `you said: ${said.label}` : `you drew ${boxesOf(said)}`;
  else if (photo.suggested && !about.boxes) $("said").textContent = `the model says ${photo.suggested}, in doubt by ${Math.round(100 * photo.doubt)} %`;
  mark(said?.decision === "label" ? said.label : about.boxes ? about.classes[current] : null, disputes ? null : photo.suggested);
  if (!disputes) {                                // the next photo is there when it is asked for
    const following = next(place);
    if (following < photos.length) new Image().src = address(`photo/${following}`);
  }
}

const NOT_YET = "drawn, and not decided yet: Enter";

// Names what is drawn on the photo on the stage.
function drafted() { return `${disputes ? "settles" : "says"} ${about.photos[list()[at]].path}`; }

function keep() { drafts.put(drafted(), drawn); $("said").textContent = NOT_YET; redraw(); }

async function broken(place) {
  const reply = await fetch(address(`photo/${place}`)).catch(() => null);
  if (reply?.status === 410) location.reload();   // the command was started again, and has other photos
  else if (list()[at] === place) $("said").textContent = reply ? "This photo does not open: skip it." : "The server is away: start the command again, then load this page anew.";
}

// What another tab, or another person under this name, decided since.
async function renew() {
  await outbox.empty();
  const reply = await fetch(address("about")).catch(() => null);
  if (!reply?.ok) return;
  const newer = await reply.json();
  if (newer.order !== about.order) { location.reload(); return; }
  const said = (photo) => `${photo.said?.decision} ${photo.said?.label}`;
  if (disputes || outbox.queue.length || about.photos.every((photo, number) => said(photo) === said(newer.photos[number]))) return;
  const wasOpen = about.photos[at] && !about.photos[at].said;
  about.photos = newer.photos;
  history = newer.history;
  if (wasOpen && about.photos[at].said) at = next(at);
  show();
}

function redraw() {
  if (about.boxes && panels[0].wide && !panels[0].isFilled) {   // boxes of before come in once, when the photo's size is known
    panels[0].isFilled = true;
    const said = disputes ? null : about.photos[at].said;
    drawn = drafts.of(drafted()) ?? (said?.boxes ?? []).map((one) => ({ label: one.label, box: one.box ?? panels[0].shares(one.pixels) }));
  }
  for (const panel of panels) {
    const theirs = panel.view?.boxes?.map((one) => ({ label: one.label, box: panel.shares(one.pixels) })) ?? [];
    panel.draw([...theirs, ...(panel === panels[0] ? drawn : [])].map((one) => ({ ...one, hue: hue(one.label) })));
  }
}

function mark(chosen, suggested = null) {
  [...$("classes").children].forEach((button, place) => {
    button.classList.toggle("chosen", about.classes[place] === chosen);
    button.classList.toggle("suggested", about.classes[place] === suggested);
  });
  const photo = list()[at] !== undefined;
  $("done").hidden = !about.boxes || !photo;
  $("accept").hidden = about.boxes || !suggested || !photo;
  $("accept").querySelector("span").textContent = suggested ? `It is ${suggested}` : "";
  $("disputed").lastChild.textContent = disputes ? " Back" : " Disputed";
}

function finished(skipped) {
  const said = document.createElement("p");
  said.textContent = disputes ? (settled.length ? "No more photos are disputed." : disputes.raters.length < 2
      ? "There is one rater so far: nothing can be disputed." : "The raters agree on every photo.")
    : `All ${about.photos.length} photos are judged${skipped ? `, ${skipped} of them skipped` : ""}. Next: ${about.next}`;
  $("stage").append(said);
}

function choose(place) {
  if (place >= about.classes.length) return;
  if (about.boxes) { current = place; mark(about.classes[current]); return; }
  decide({ decision: "label", label: about.classes[place] });
}

function decide(told) {
  const number = list()[at];
  if (number === undefined) return;
  const photo = about.photos[number];
  drafts.drop(drafted());
  outbox.put({ ...told, path: photo.path, ...(disputes ? { settles: true } : {}) });
  if (disputes) { disputes.photos.splice(at, 1); at = Math.min(at, disputes.photos.length); settled.push(photo.path); show(); return; }
  photo.said = told;
  history.push(number);
  at = next(number);
  show();
}

const settled = [];

function undo() {
  if (disputes) {
    const path = settled.pop();
    if (path) { outbox.put({ decision: "undo", path, settles: true }); dispute(); }
    return;
  }
  const number = history.pop();
  if (number === undefined) { tell("There is nothing to undo."); setTimeout(() => tell(""), 2000); return; }
  for (let last = history.length; last >= 0; last = history.lastIndexOf(number)) {   // and what was said of it before
    outbox.put({ decision: "undo", path: about.photos[number].path });
    if (last < history.length) history.splice(last, 1);
  }
  about.photos[number].said = null;
  at = number;
  show();
}

let waiting = null;   // for the disputed photos: the server is asked, and the photos of before are on the stage

async function dispute() {
  const mine = waiting = {};
  try {
    await outbox.empty();
    const reply = await fetch(address("disputed"));
    const found = reply.ok ? await reply.json() : await reply.text();
    if (mine !== waiting) return;   // who asked went back
    if (reply.ok) compare(found); else tell(found);
  } finally { if (mine === waiting) waiting = null; }
}

function compare(found) {
  if (found.order !== about.order) { location.reload(); return; }
  disputes = found;
  at = 0;
  const table = document.createElement("table");
  const row = (...cells) => { const tr = table.insertRow(); for (const cell of cells) tr.insertCell().textContent = cell; };
  const shown = (number) => number === null ? "not defined" : number.toFixed(3);
  for (const [one, other, count, kappa] of disputes.pairs) row(`${one}, ${other}: ${about.boxes ? "boxes with their like" : "Cohen's kappa"} of ${count} photos`, shown(kappa));
  if (!about.boxes && disputes.raters.length > 1) row(`all, Fleiss' kappa of ${disputes.shared} photos`, shown(disputes.fleiss));
  $("agreement").replaceChildren(table);
  show();
}

function back() {
  waiting = null;
  if (!disputes) return;
  disputes = null;
  $("agreement").replaceChildren();
  at = next(-1);
  show();
}

function look(step) {
  const most = list().length;
  at = Math.max(0, Math.min(at + step, most - (disputes ? 0 : 1)));
  show();
}

function boxesDone() {
  if (list()[at] === undefined) return;
  const before = drafts.of(drafted()) ?? (disputes ? null : about.photos[at].said?.boxes);
  if (before?.length && !panels[0].isFilled) return;   // they come in with the photo, and would be lost
  decide({ decision: "boxes", boxes: drawn });
}
const accept = () => about.photos[at]?.suggested && decide({ decision: "label", label: about.photos[at].suggested });
const actions = {
  u: undo, s: () => decide({ decision: "skip" }), z: () => panels.forEach((panel) => panel.zoomIn()),
  d: () => disputes || waiting ? back() : dispute(), ArrowLeft: () => look(-1), ArrowRight: () => look(1),
  Enter: () => about.boxes ? boxesDone() : !disputes && accept(),
  Backspace: () => about.boxes ? drawn.pop() && keep() : undo(), Escape: back,
};

document.addEventListener("keydown", (event) => {
  if (!about || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const place = KEYS.indexOf(key);
  if (place >= 0 && place < about.classes.length) choose(place);
  else if (actions[key] && !(key === "Enter" && event.target.closest?.("button"))) actions[key]();
  else return;
  event.preventDefault();
});
for (const [id, key] of [["undo", "u"], ["skip", "s"], ["zoom", "z"], ["disputed", "d"], ["done", "Enter"], ["accept", "Enter"]])
  $(id).addEventListener("click", () => { if (about) actions[key](); $(id).blur(); });
const dark = matchMedia("(prefers-color-scheme: dark)");
document.body.classList.toggle("dark", dark.matches);
$("theme").addEventListener("click", () => document.body.classList.toggle("dark"));
document.addEventListener("visibilitychange", () => { if (!document.hidden && outbox) renew(); });
start().catch(() => tell("The server does not answer: start the command again, then load this page anew."));
