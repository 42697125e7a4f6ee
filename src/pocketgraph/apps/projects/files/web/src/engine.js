// The model runs in this browser, by LiteRT.js; nothing leaves the device.
import { Tensor, loadAndCompile, loadLiteRt } from "./litert/core.js";
import { APPLICATIONS } from "./applications.js";
import { keep } from "./capture.js";
import { TYPES, coded, numbers } from "./codes.js";

export async function numbersOf(file, dtype) {
  const response = await fetch(file);
  if (!response.ok) throw new Error(`${file} is missing`);
  return new TYPES[dtype](await response.arrayBuffer());
}

// For each of the runtime's inputs or outputs which one of model.json it is: by name, else by place.
function places(details, known) {
  const found = details.map(({ name }) => known.findIndex((entry) => entry.name === name));
  return new Set(found).size === known.length && !found.includes(-1) ? found : known.map((_, i) => i);
}

let runtime;   // one for all models of the page

// The model, compiled; `run` takes and gives arrays of numbers.
export class Model {
  static async open(about, accelerator = "wasm") {
    runtime ??= loadLiteRt("litert/wasm/", { threads: globalThis.crossOriginIsolated === true });
    await runtime;
    const model = new Model();
    model.about = about;
    model.compiled = await loadAndCompile("model.tflite", { accelerator });
    model.entering = places(model.compiled.getInputDetails(), about.inputs);
    model.leaving = places(model.compiled.getOutputDetails(), about.outputs);
    return model;
  }

  // `at` is one of model.json's sizes; without it the model's own.
  async run(arrays, at) {
    const tensors = this.entering.map((i) => {
      const input = this.about.inputs[i];
      return new Tensor(coded(arrays[i], input), at?.inputs[i] ?? input.shape);
    });
    let outputs = [];
    try {
      outputs = await (at ? this.compiled.run(at.signature, tensors) : this.compiled.run(tensors));
      const found = [];
      for (const [place, output] of outputs.entries()) {
        const i = this.leaving[place];
        found[i] = numbers(await output.data(), this.about.outputs[i]);   // also of what a graphics processor holds
      }
      return found;
    } finally {
      for (const tensor of [...tensors, ...outputs]) tensor.delete();
    }
  }

  // The difference from the answers that came with the model, as a share of the largest value: the largest one, or the
  // mean where the model rounds on its way, so that few values may be far off. `unproven` names the first output of which
  // that says nothing, as most of what it must give is NaN or infinite.
  async difference() {
    const inputs = await Promise.all(this.about.inputs.map(({ dtype }, i) => numbersOf(`golden/input_${i}.bin`, dtype)));
    const found = await this.run(inputs);
    let worst = 0;
    this.unproven = "";
    for (const [i, output] of this.about.outputs.entries()) {
      const wanted = numbers(await numbersOf(`golden/output_${i}.bin`, output.dtype), output);
      let peak = 0, off = 0, sum = 0;
      for (let k = 0; k < wanted.length; k++) {
        const same = wanted[k] === found[i][k] || (Number.isNaN(wanted[k]) && Number.isNaN(found[i][k]));
        const apart = same ? 0 : Math.abs(wanted[k] - found[i][k]);
        if (Number.isFinite(wanted[k])) peak = Math.max(peak, Math.abs(wanted[k]));
        off = Math.max(off, apart);
        sum += apart;
      }
      if (2 * wanted.filter((value) => Number.isFinite(value)).length < wanted.length) this.unproven ||= output.name;
      if (this.about.by_mean) off = sum / Math.max(1, wanted.length);
      worst = Math.max(worst, Number.isNaN(off + sum) ? Infinity : off / (peak || 1));
    }
    return worst;
  }
}

export class Engine {
  constructor(handlers) {
    this.handlers = handlers;
    this.busy = false;
    this.waiting = [];
  }

  async open() {
    const response = await fetch("model.json");
    if (!response.ok) throw new Error("model.json is missing: open this page from the folder that `npm run build` made.");
    const about = await response.json();
    const wanted = new URLSearchParams(location.search).get("app");
    if (wanted === "benchmark") about.kind = about.app = wanted;
    if ("serviceWorker" in navigator) navigator.serviceWorker.register("offline.js").catch(() => {});
    this.model = await this.fastest(about);
    if (about.kind === "benchmark") {
      about.golden_inputs = await Promise.all(about.inputs.map(({ dtype }, i) => numbersOf(`golden/input_${i}.bin`, dtype)));
    }
    this.application = new APPLICATIONS[about.app](about);
    this.about = { ...about, source: "page", hears: about.kind === "speech", stills: about.kind !== "speech" && about.kind !== "benchmark", benchmark: about.kind !== "benchmark", settings: this.application.rows };
    return this.about;
  }

  // The graphics processor where it is there and answers right, else WebAssembly.
  async fastest(about) {
    const wasm = await Model.open(about);
    const wrong = await wasm.difference();
    if (!(wrong <= about.tolerance)) throw new Error(`The model answers wrong in this browser: off by ${wrong.toExponential(1)} of the peak.`);
    document.body.dataset.difference = String(wrong);
    document.body.dataset.accelerator = "wasm";
    if (wasm.unproven) return wasm;   // nothing tells whether another one answers right
    if (!navigator.gpu || !(await navigator.gpu.requestAdapter().catch(() => null))) return wasm;
    try {
      const graphics = await Model.open(about, "webgpu");
      const isRight = (await graphics.difference()) <= about.tolerance;
      const isChosen = isRight && (await this.timed(graphics)) < (await this.timed(wasm));
      (isChosen ? wasm : graphics).compiled.delete();
      if (isChosen) document.body.dataset.accelerator = "webgpu";
      return isChosen ? graphics : wasm;
    } catch {
      return wasm;
    }
  }

  async timed(model) {
    const started = performance.now();
    for (let i = 0; i < 5; i++) await model.difference();
    return performance.now() - started;
  }

  async work(inputs, frame) {
    const { at } = this.application, started = performance.now();
    const outputs = await this.model.run(inputs, at), took = performance.now() - started;
    const shapes = at?.outputs ?? this.model.about.outputs.map((output) => output.shape);
    const answer = this.application.answer(outputs, shapes, started, frame, took);
    if (answer.image) answer.picture = await createImageBitmap(answer.image);
    return { ...answer, ms: took, trip: performance.now() - started };
  }

  async look(canvas) {
    this.busy = true;
    try {
      const frame = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      this.handlers.answered(await this.work(this.application.inputs(frame), frame));
    } finally {
      this.busy = false;
    }
  }

  async again() {
    this.busy = true;
    try {
      this.handlers.answered(await this.work(this.application.inputs(), null));
    } finally {
      this.busy = false;
    }
  }

  // Every stride of samples is run; what comes meanwhile waits.
  async listen(samples) {
    this.waiting.push(samples);
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.waiting.length) {
        const some = this.waiting.shift(), stride = Math.max(1, Math.round(this.about.rate * 0.05));
        for (let start = 0; start < some.length; start += stride) {
          this.handlers.answered(await this.work(this.application.take(some.subarray(start, start + stride)), null));
        }
        if (this.waiting.length > 20) this.waiting.splice(0, this.waiting.length - 20);
      }
    } catch (error) {
      this.handlers.answered({ error: String(error.message || error) });
    } finally {
      this.busy = false;
    }
  }

  change(name, value) {
    this.application.change(name, value);
    this.handlers.settings(this.application.rows);
  }

  // The label stands before the picture's name.
  async save(canvas, label) {
    const blob = await new Promise((resolve) => { canvas.toBlob(resolve, "image/jpeg", 0.95); });
    const name = `${label.replace(/[^\p{L}\p{N}_-]+/gu, "_")}-${new Date().toISOString().replace(/[:.]/g, "-")}.jpg`;
    keep(blob, name);
    return name;
  }

  remember(name) { this.application.remember?.(name); }

  // What `pocketgraph fit --device-file` reads; times in microseconds. A browser does not time kinds of op.
  async report() {
    const { accelerator } = document.body.dataset, threads = crossOriginIsolated ? navigator.hardwareConcurrency : 1;
    const memory = navigator.deviceMemory ? navigator.deviceMemory * 2 ** 30 : null;
    return {
      threads, engine: `LiteRT.js, ${accelerator}`, ...this.application.report(), by_type: {}, flops: this.about.flops,
      machine: { processor: navigator.userAgent, usable_processors: navigator.hardwareConcurrency, memory_bytes: memory },
    };
  }
}
