// What each application makes of a model's outputs; the same as `pocketgraph live` on a computer.
import { DECODERS } from "./decoders.js";
import { asInput, asPicture } from "./pixels.js";
import { people } from "./skeletons.js";
import { Words, front } from "./sound.js";
import { Tracker } from "./tracking.js";

const row = (name, text, value, min = 0, max = 1, step = 0.01) => ({ name, text, value, min, max, step });
const choice = (name, text, value, choices) => ({ name, text, value, choices });

// Whether all scores are from 0 to 1, as logits are not; rounding makes shares a little larger than 1.
const areShares = (scores) => !scores.some((score) => score < 0 || score > 1.001);

// Logits as shares of classes that exclude each other.
function softmax(logits) {
  const most = Math.max(...logits), powers = Array.from(logits, (logit) => Math.exp(logit - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

class Application {
  constructor(about, rows) {
    this.about = about;
    this.rows = rows;
  }

  value(name) { return this.rows.find((entry) => entry.name === name).value; }

  change(name, value) {
    const found = this.rows.find((entry) => entry.name === name);
    if (found) found.value = value;
  }

  label(index) { return this.about.labels[index] ?? `class ${index}`; }

  inputs(frame) { return [asInput(frame, this.about.input)]; }
}

class Classify extends Application {
  constructor(about) {
    super(about, [row("threshold", "Show scores over", 0.05), row("decay", "Keep of earlier frames", 0.75, 0, 0.99), row("top", "How many classes", 5, 1, 20, 1)]);
  }

  answer([given]) {
    // One score is the share of the second of two classes.
    const scores = given.length === 1 && this.about.labels.length === 2 ? [1 - given[0], given[0]] : given;
    const decay = this.value("decay");
    this.logits ||= !areShares(scores);  // of logits a small one means nothing
    const isWhole = this.logits || !scores.some((score) => score > 0.05);  // of a thousand classes often none is
    this.kept = this.kept && this.kept.length === scores.length
      ? this.kept.map((kept, i) => (kept * decay <= 0.01 && !isWhole ? 0 : kept * decay) + (scores[i] > 0.05 || isWhole ? scores[i] * (1 - decay) : 0))
      : Array.from(scores);
    const order = this.kept.map((score, i) => [score, i]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, this.value("top"));
    const shown = order.filter(([score], place) => place === 0 || this.logits || score > this.value("threshold"));
    return { classes: shown.map(([score, i]) => ({ label: this.label(i), score })), shares: !this.logits };
  }
}

class Detect extends Application {
  constructor(about) {
    super(about, [row("threshold", "Show scores over", about.least), row("overlap", "Boxes are one that overlap by", 0.5),
      choice("track", "Follow things", "on", ["on", "off"]), row("line", "Count crossings of the line at (share of the width)", 0.5)]);
    this.tracker = new Tracker();
  }

  answer(outputs, shapes, time) {
    const found = {}, sizes = {};
    this.about.parts.forEach((part, i) => { found[part] = outputs[i]; sizes[part] = shapes[i]; });
    const { height, width } = this.about.input;
    const how = { labels: this.about.labels, least: this.value("threshold"), overlap: this.value("overlap"), anchors: this.about.anchors, height, width };
    const detections = DECODERS[this.about.decoder](found, how, sizes);
    if (this.value("track") === "off") return { detections, counts: { now: detections.length } };
    this.tracker.line = this.value("line");
    const followed = this.tracker.match(detections, time / 1000);
    return { detections: followed, counts: this.tracker.counts() };
  }
}

class Picture extends Application {
  constructor(about, rows = []) { super(about, rows); }

  answer([values], [shape]) { return { image: asPicture(values, shape, this.about.input) }; }
}

class Stylize extends Picture {
  constructor(about) {
    const styles = about.labels.map((name, i) => row(`style${i}`, name, i === 0 ? 1 : 0));
    const sizes = (about.sizes ?? []).map(({ size }) => size);
    super(about, [...(sizes.length ? [choice("size", "Resolution", about.input.width, sizes)] : []), ...styles]);
    this.styles = styles;
    this.last = 1 % styles.length;
  }

  // The size that was chosen; nothing where the model has but one.
  get at() { return this.about.sizes?.find(({ size }) => size === this.value("size")); }

  // The others shrink together, what falls to 0.01 becomes 0; where they all are 0, the largest before takes the rest.
  change(name, value) {
    const moved = this.styles.findIndex((entry) => entry.name === name);
    if (moved < 0) { super.change(name, value); return; }
    const before = this.styles.map((entry) => entry.value), others = this.styles.filter((_, i) => i !== moved);
    const total = others.reduce((sum, entry) => sum + entry.value, 0);
    this.styles[moved].value = value;
    if (total > 0) {
      for (const entry of others) {
        entry.value *= (1 - value) / total;
        if (entry.value <= 0.01) entry.value = 0;
      }
      this.last = before.reduce((best, weight, i) => (i !== moved && (best < 0 || weight > before[best]) ? i : best), -1);
    } else if (others.length) {
      if (this.last === moved) this.last = (moved + 1) % this.styles.length;
      this.styles[this.last].value = 1 - value;
    }
  }

  inputs(frame) {
    const total = this.styles.reduce((sum, entry) => sum + entry.value, 0);
    const weights = Float32Array.from(this.styles, (entry) => (total > 0 ? entry.value / total : 1 / this.styles.length));
    const found = [];
    const [, height, width] = this.at?.inputs[this.about.place] ?? [];
    found[this.about.place] = asInput(frame, height ? { ...this.about.input, height, width } : this.about.input);
    found[1 - this.about.place] = weights;
    return found;
  }
}

class Segment extends Picture {
  constructor(about) { super(about, [row("cover", "Colour over the picture", 0.5)]); }

  answer([values], [shape], time, frame) {
    const sides = shape.filter((size) => size > 1), isPlane = sides.length === 2;  // the best class of each place, no scores
    const [height, width, classes] = isPlane ? [...sides, 1] : shape.slice(-3);
    const image = new ImageData(width, height), counts = new Map();
    const cover = this.value("cover"), colours = this.about.palette;
    for (let i = 0; i < width * height; i++) {
      let best = isPlane ? Math.max(0, values[i]) : 0;
      for (let c = 1; c < classes; c++) if (values[i * classes + c] > values[i * classes + best]) best = c;
      counts.set(best, (counts.get(best) || 0) + 1);
      const colour = colours[best < colours.length ? best : 1 + ((best - 1) % (colours.length - 1))];
      const from = 4 * (Math.floor((Math.floor(i / width) * frame.height) / height) * frame.width + Math.floor(((i % width) * frame.width) / width));
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = frame.data[from + c] * (1 - cover) + colour[c] * cover;
      image.data[4 * i + 3] = 255;
    }
    const shares = [...counts].map(([i, count]) => [count / (width * height), i]).filter(([share]) => share >= 0.01).sort((a, b) => b[0] - a[0]);
    return { image, classes: shares.map(([score, i]) => ({ label: this.about.labels[i] ?? `class ${i}`, score })) };
  }
}

class Pose extends Application {
  constructor(about) { super(about, [row("threshold", "Show parts over", 0.1)]); }

  answer([maps], [shape]) {
    const found = people(maps, shape, this.value("threshold"));
    return { ...found, counts: { now: found.detections.length } };
  }
}

class Embed extends Application {
  constructor(about) {
    super(about, []);
    this.examples = [];
  }

  answer([vector]) {
    const length = Math.max(1e-12, Math.sqrt(vector.reduce((sum, v) => sum + v * v, 0))), near = new Map();
    this.latest = Float64Array.from(vector, (v) => v / length);
    for (const [name, example] of this.examples) {
      const likeness = example.reduce((sum, v, i) => sum + v * this.latest[i], 0);
      near.set(name, Math.max(near.get(name) ?? -1, likeness));
    }
    const ranked = [...near].sort((a, b) => b[1] - a[1]).slice(0, 5);
    return { classes: ranked.map(([label, score]) => ({ label, score })), values: { size: vector.length, examples: this.examples.length } };
  }

  remember(name) { if (this.latest) this.examples.push([name, this.latest]); }
}

class Speech extends Application {
  constructor(about) {
    super(about, [row("threshold", "A word's average has to be over", 0.7), row("window_ms", "Average over (ms)", 500, 0, 5000, 10),
      row("suppression_ms", "No other word for (ms)", 1500, 0, 10000, 10), row("minimum_count", "Results in the window at least", 3, 1, 50, 1)]);
    this.ring = new Float32Array(about.samples);
    this.heard = 0;
  }

  // The ring after more samples, and what the graph makes of it before its weights.
  take(samples) {
    const some = samples.subarray(Math.max(0, samples.length - this.ring.length));
    this.ring.copyWithin(0, some.length);
    this.ring.set(some, this.ring.length - some.length);
    this.heard += samples.length;
    this.features = front(this.ring, this.about.rate, this.about.front);
    return [this.about.front.length ? this.features.values : this.ring];
  }

  answer([given]) {
    this.logits ||= !areShares(given);  // a word's threshold is one of shares
    const scores = this.logits && given.length > 1 ? softmax(given) : given;
    const settings = Object.fromEntries(this.rows.map((entry) => [entry.name, entry.value]));
    this.words ??= new Words(Array.from(scores, (_, i) => this.label(i)), settings, this.about.repeats);
    this.words.settings = settings;
    const time = (1000 * this.heard) / this.about.rate, word = this.words.hear(Array.from(scores), time);
    const best = Array.from(scores, (score, i) => [score, i]).sort((a, b) => b[0] - a[0]).slice(0, 5);
    const answer = { classes: best.map(([score, i]) => ({ label: this.label(i), score })), values: { time: time / 1000 } };
    if (word) answer.word = word;
    if (this.about.front.length) answer.values.spectrogram = shown(this.features);
    return answer;
  }
}

function shown({ values, frames, bins }) {
  const step = Math.max(1, Math.floor(frames / 100)), found = [];
  let least = Infinity, most = -Infinity;
  for (const value of values) { if (value < least) least = value; if (value > most) most = value; }
  for (let frame = 0; frame < frames; frame += step) {
    found.push(Array.from(values.subarray(frame * bins, frame * bins + Math.min(bins, 64)), (v) => Math.round((255 * (v - least)) / Math.max(most - least, 1e-6))));
  }
  return found;
}

class Benchmark extends Application {
  constructor(about) {
    super(about, []);
    this.times = [];
  }

  inputs() { return this.about.golden_inputs; }

  answer(outputs, shapes, time, frame, took) {
    this.times.push(took);
    if (this.times.length > 1000) this.times.shift();
    const { average, min } = this.statistics(), { p50, p90, p99 } = this.percentiles();
    return { values: { p50, p90, p99, runs: this.times.length, least: min, mean: average } };
  }

  percentiles() {
    const sorted = [...this.times].sort((a, b) => a - b);
    const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor((share / 100) * sorted.length))];
    return { p50: at(50), p90: at(90), p99: at(99) };
  }

  statistics() {
    const { times } = this, average = times.reduce((sum, t) => sum + t, 0) / times.length;
    return { count: times.length, min: Math.min(...times), max: Math.max(...times), average };
  }

  // In microseconds.
  report() {
    if (!this.times.length) throw new Error("There is no time yet.");
    const whole = (found) => Object.fromEntries(Object.entries(found).map(([name, value]) => [name, name === "count" ? value : 1000 * value]));
    return { no_stats: whole(this.statistics()), percentiles: whole(this.percentiles()) };
  }
}

export const APPLICATIONS = {
  classify: Classify, detect: Detect, image: Picture, stylize: Stylize, segment: Segment, pose: Pose, embed: Embed,
  speech: Speech, benchmark: Benchmark,
};
