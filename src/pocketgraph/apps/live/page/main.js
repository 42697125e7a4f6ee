// The page: what is seen or heard goes to the engine, the newest first; what it answers is drawn.
import { Camera, Microphone, closed, keep, photoOf } from "./capture.js";
import { draw, drawSound } from "./drawing.js";
import { Engine } from "./engine.js";

const at = (id) => document.getElementById(id);
const view = at("view"), pen = view.getContext("2d");
const settings = { turn: 0, mirror: false, paused: false, details: false };
const rates = [];
const SLOW = 2000, LARGEST = 2048;
const NAMES = {
  now: "in sight", in: "crossed the line inwards", out: "crossed the line outwards", all: "followed so far", time: "seconds heard",
  p50: "half of the runs take at most (ms)", p90: "nine in ten (ms)", p99: "99 in 100 (ms)", least: "the quickest (ms)",
  mean: "on average (ms)", size: "numbers in a vector",
};
let began = 0, isLost = false;
let about, engine, camera, microphone, photo = null, last = null, shown = null, wave = null, stats = [];

function say(text, action, run, isNews = false) {
  const box = at("message");
  box.classList.toggle("news", isNews);
  box.hidden = !text;
  box.textContent = text || "";
  if (text && action) {
    const button = document.createElement("button");
    button.textContent = action;
    button.onclick = () => { say(""); run(); };
    box.append(document.createElement("br"), button);
  }
}

// One frame in work at a time: the next is taken when the last one is answered.
async function step() {
  if (settings.paused || engine.busy || document.hidden) return;
  began = performance.now();
  if (about.kind === "benchmark") return engine.again();
  const picture = photo || (camera && camera.frame(settings));
  if (picture) {
    shown = picture;
    await engine.look(picture);
  }
}

function tick() {
  if (isLost) return;
  step().catch((error) => say(String(error.message || error)));
  const since = engine.busy ? performance.now() - began : 0;
  if (since > SLOW) at("state").textContent = `the model is at work on this one for ${Math.round(since / 1000)} seconds`;
  requestAnimationFrame(tick);
}

function answered(answer) {
  if (answer.error) { say(answer.error); return; }
  if (!at("message").hidden && !at("message").querySelector("button")) say("");
  if (last && last.picture && last.picture !== shown) last.picture.close();
  last = answer;
  if (answer.stats) stats = answer.stats;
  const now = performance.now();
  rates.push(now);
  while (rates.length && rates[0] < now - 2000) rates.shift();
  const rate = rates.length > 1 ? (1000 * (rates.length - 1)) / (now - rates[0]) : 0;
  at("state").textContent = `${rate.toFixed(rate < 10 ? 1 : 0)} ${about.hears ? "answers" : about.kind === "benchmark" ? "runs" : "frames"} a second, model ${answer.ms.toFixed(1)} ms`;
  document.body.dataset.answers = String(1 + Number(document.body.dataset.answers || 0));
  paint(answer);
  listed(answer);
}

function paint(answer) {
  if (about.hears) { drawSound(pen, view, wave, answer.values && answer.values.spectrogram); return; }
  const under = answer.picture || shown;
  if (!under) return;
  const before = shown || under, larger = Math.max(1, Math.min(under.width / before.width, LARGEST / before.width));
  const width = Math.round(before.width * larger), height = Math.round(before.height * larger);
  if (view.width !== width || view.height !== height) { view.width = width; view.height = height; }
  draw(pen, view, under, answer);
  const share = Number(at("share").value);
  if (share > 0 && under !== before) {
    pen.drawImage(before, 0, 0, share * before.width, before.height, 0, 0, share * width, height);
    pen.fillStyle = "#fff";
    pen.fillRect(share * width - 1, 0, 2, height);
  }
}

// A share as such; what is none, as a model without a softmax gives it, as the number that it is.
function scored(score, answer) {
  if (score === null || !Number.isFinite(score)) return "no number";
  return answer.shares !== false && answer.classes.every((entry) => Math.abs(entry.score) <= 1) ? `${(100 * score).toFixed(1)} %` : score.toFixed(2);
}

function listed(answer) {
  const list = at("classes");
  list.replaceChildren(...(answer.classes || []).map((entry) => {
    const row = document.createElement("li"), name = document.createElement("span"), score = document.createElement("b");
    name.textContent = entry.label;
    score.textContent = scored(entry.score, answer);
    row.style.setProperty("--share", `${Math.max(0, Math.min(100, 100 * entry.score))}%`);
    row.append(name, score);
    return row;
  }));
  if (answer.word) {
    const word = at("word"), again = word.cloneNode();
    again.hidden = false;
    again.textContent = answer.word.label;
    word.replaceWith(again);
  }
  const numbers = { ...(answer.counts || {}) };
  for (const [name, value] of Object.entries(answer.values || {})) if (typeof value !== "object") numbers[name] = value;
  at("numbers").replaceChildren(...Object.entries(numbers).flatMap(([name, value]) => {
    const term = document.createElement("dt"), what = document.createElement("dd");
    term.textContent = NAMES[name] ?? name;
    what.textContent = typeof value === "number" ? String(Math.round(value * 1000) / 1000) : value;
    return [term, what];
  }));
  const box = at("debug");
  box.hidden = !settings.details;
  if (settings.details) {
    box.textContent = [
      `Frame: ${shown ? `${shown.width}x${shown.height}` : "none"}`, `View: ${view.clientWidth}x${view.clientHeight}`,
      `Rotation: ${settings.turn}`, `Inference time: ${answer.ms.toFixed(1)}ms`,
      `Waited: ${(answer.waited ?? 0).toFixed(1)}ms`, `There and back: ${(answer.trip ?? 0).toFixed(1)}ms`,
      ...stats,
    ].join("\n");
  }
}

function controls(rows) {
  const form = at("settings");
  if (form.contains(document.activeElement) && form.children.length === rows.length) {
    for (const row of rows) {  // the others follow while one is moved
      const field = form.elements[row.name];
      if (!field || field === document.activeElement) continue;
      field.value = row.value;
      const value = field.parentElement.querySelector("output");
      if (value) value.textContent = field.value;
    }
    return;
  }
  form.replaceChildren(...rows.map((row) => {
    const label = document.createElement("label"), value = document.createElement("output");
    label.textContent = row.text;
    let field;
    if (row.choices) {
      field = document.createElement("select");
      field.append(...row.choices.map((choice) => new Option(choice, choice)));
      field.value = row.value;
      field.onchange = () => engine.change(row.name, typeof row.value === "number" ? Number(field.value) : field.value);
    } else {
      field = Object.assign(document.createElement("input"), { type: "range", min: row.min, max: row.max, step: row.step });
      field.value = row.value;
      value.textContent = row.value;
      field.oninput = () => { value.textContent = field.value; engine.change(row.name, Number(field.value)); };
      label.append(value);
    }
    field.name = row.name;
    field.id = `setting-${row.name}`;
    label.htmlFor = field.id;  // else it is of the value, which stands first in it
    label.append(field);
    return label;
  }));
}

async function open() {
  say("");
  closed(camera || microphone);
  try {
    if (about.hears) {
      microphone = new Microphone((samples, rate) => {
        wave = samples;
        if (!settings.paused) engine.listen(samples, rate);
      }, (why) => say(why, "Try again", open), about.rate);
      await microphone.open();
    } else {
      camera = new Camera(at("video"), (why) => say(why, "Try again", open));
      await camera.open();
    }
  } catch (error) {
    say(error.message, "Try again", open);
  }
}

async function begin() {
  engine = new Engine({
    answered,
    settings: controls,
    lost: (why) => { isLost = true; at("state").textContent = "not connected"; say(why, "Connect again", () => location.reload()); },
    frame: (picture) => { shown = picture; },
  });
  try {
    about = await engine.open();
  } catch (error) {
    say(error.message, "Connect again", () => location.reload());
    return;
  }
  at("name").textContent = about.name;
  document.title = `${about.name} live`;
  document.body.dataset.kind = about.kind;
  if (about.hears) view.ariaLabel = "what the microphone hears";
  at("state").textContent = "ready";
  controls(about.settings);
  const picture = !about.hears && about.source === "page" && about.kind !== "benchmark";
  for (const tool of document.querySelectorAll("[data-needs=picture]")) tool.hidden = !picture;
  at("still").hidden = !picture || !(about.stills || about.kind === "embed");
  at("remember").hidden = about.kind !== "embed";
  at("save").hidden = !about.stills;
  if (about.kind === "benchmark") at("stage").hidden = true;
  at("report").hidden = about.kind !== "benchmark";
  at("benchmark").hidden = !about.benchmark;
  at("split").hidden = !picture || !["stylize", "image"].includes(about.kind);
  if (about.source === "page" && about.kind !== "benchmark") open();
  if (about.source === "page" && !about.hears) tick();
}

at("pause").onclick = () => {
  settings.paused = !settings.paused;
  at("pause").textContent = settings.paused ? "Continue" : "Pause";
};
at("turn").onclick = () => { settings.turn = (settings.turn + 90) % 360; };
at("mirror").onclick = () => { settings.mirror = !settings.mirror; };
at("details").onclick = () => {
  settings.details = !settings.details;
  stats = [];
  if (settings.details && engine.stats) engine.stats();
  if (last) listed(last);
};
at("share").oninput = () => { if (last) paint(last); };
at("report").onclick = async () => {
  try {
    const told = { model: about.name, ...await engine.report() };
    keep(new Blob([JSON.stringify(told, null, 2)], { type: "application/json" }), `${about.name.replace(/[^\w.-]+/g, "_")}-times.json`);
    say("These times are a device of your own: pocketgraph fit MODEL --device-file=FILE", "Good", () => {}, true);
  } catch (error) {
    say(String(error.message || error));
  }
};
at("remember").onclick = () => { if (at("label").value.trim()) engine.remember(at("label").value.trim()); };
// With a button, as the next answer takes away what has none.
async function choose(file) {
  const back = () => { photo = null; };
  try {
    photo = file ? await photoOf(file) : null;
    say(photo ? "This is the photo." : "", "Back to the camera", back, true);
  } catch {
    say(`${file.name} is no picture that this browser opens.`, photo ? "Back to the camera" : "Good", back);
  }
}
at("photo").onchange = (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  choose(file);
};
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {  // a browser would leave the page for the file
  event.preventDefault();
  const [file] = event.dataTransfer.files;
  if (file && about && !at("photo").closest("[hidden]")) choose(file);
});
at("still").onsubmit = async (event) => {
  event.preventDefault();
  try {
    at("saved").textContent = `saved: ${await engine.save(shown, at("label").value.trim())}`;
  } catch (error) {
    at("saved").textContent = error.message;
  }
};
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "d") at("details").click();
  if (event.key === " " && !event.target.closest("button, a")) { event.preventDefault(); at("pause").click(); }
});
begin();
