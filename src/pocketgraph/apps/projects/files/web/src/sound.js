// A model's own front: TensorFlow's AudioSpectrogram (Hann windows) and Mfcc, and words out of scores.
const QUIETEST = 1e-12;

// The squares of a real signal's spectrum, [length / 2 + 1]; length is a power of two.
function powers(re, im) {
  const length = re.length;
  im.fill(0);
  for (let i = 1, j = 0; i < length; i++) {
    let bit = length >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) { const kept = re[i]; re[i] = re[j]; re[j] = kept; }
  }
  for (let size = 2; size <= length; size *= 2) {
    const half = size / 2, step = (-2 * Math.PI) / size;
    for (let k = 0; k < half; k++) {
      const c = Math.cos(step * k), s = Math.sin(step * k);
      for (let start = k; start < length; start += size) {
        const other = start + half, x = re[other] * c - im[other] * s, y = re[other] * s + im[other] * c;
        re[other] = re[start] - x; im[other] = im[start] - y;
        re[start] += x; im[start] += y;
      }
    }
  }
}

// float32 [frames][frequencies], by rows.
export function spectrogram(samples, { window_size: size, stride, magnitude_squared: squared }) {
  let length = 1;
  while (length < size) length *= 2;
  const frames = samples.length >= size ? 1 + Math.floor((samples.length - size) / stride) : 0, bins = length / 2 + 1;
  const hann = Float64Array.from({ length: size }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / size));
  const re = new Float64Array(length), im = new Float64Array(length), found = new Float32Array(frames * bins);
  for (let frame = 0; frame < frames; frame++) {
    re.fill(0);
    for (let i = 0; i < size; i++) re[i] = samples[frame * stride + i] * hann[i];
    powers(re, im);
    for (let bin = 0; bin < bins; bin++) {
      const power = re[bin] * re[bin] + im[bin] * im[bin];
      found[frame * bins + bin] = squared ? power : Math.sqrt(power);
    }
  }
  return { values: found, frames, bins };
}

const mel = (hertz) => 1127 * Math.log1p(hertz / 700);

function melWeights(bins, rate, bands, low, high) {
  const lowest = mel(low), spacing = (mel(high) - lowest) / (bands + 1);
  const centers = Array.from({ length: bands + 2 }, (_, i) => lowest + spacing * i);
  const step = (0.5 * rate) / (bins - 1), first = Math.floor(1.5 + low / step), last = Math.floor(high / step);
  const weights = [];  // [place, band, share]
  for (let place = first; place <= last; place++) {
    const here = mel(place * step);
    let below = centers.slice(1).findIndex((center) => center >= here);
    if (below < 0) below = bands + 1;
    const share = below <= bands ? (centers[below + 1] - here) / (centers[below + 1] - centers[below]) : 0;
    if (below >= 1 && below <= bands) weights.push([place, below - 1, share]);
    if (below + 1 >= 1 && below + 1 <= bands) weights.push([place, below, 1 - share]);
  }
  return weights;
}

// float32 [frames][coefficients] of squared magnitudes.
export function mfcc({ values, frames, bins }, rate, front) {
  const { upper_frequency_limit: high, lower_frequency_limit: low, filterbank_channel_count: bands, dct_coefficient_count: count } = front;
  const weights = melWeights(bins, rate, bands, low, high), found = new Float32Array(frames * count);
  const cosines = Float64Array.from({ length: bands * count }, (_, i) =>
    Math.sqrt(2 / bands) * Math.cos((Math.PI / bands) * (Math.floor(i / count) + 0.5) * (i % count)));
  const energies = new Float64Array(bands);
  for (let frame = 0; frame < frames; frame++) {
    energies.fill(0);
    for (const [place, band, share] of weights) energies[band] += Math.sqrt(values[frame * bins + place]) * share;
    for (let coefficient = 0; coefficient < count; coefficient++) {
      let sum = 0;
      for (let band = 0; band < bands; band++) sum += Math.log(Math.max(energies[band], QUIETEST)) * cosines[band * count + coefficient];
      found[frame * count + coefficient] = sum;
    }
  }
  return { values: found, frames, bins: count };
}

// What the graph makes of samples before its first weights, in the order of model.json's steps.
export function front(samples, rate, steps) {
  let found = { values: samples, frames: 1, bins: samples.length };
  for (const step of steps) {
    if (step.op === "AudioSpectrogram") found = spectrogram(found.values, step);
    if (step.op === "Mfcc") found = mfcc(found, rate, step);
  }
  return found;
}

// RecognizeCommands of TensorFlow 1.15: averages over a window, each word told once; where it repeats, again.
export class Words {
  constructor(labels, settings, repeats = false) {
    this.labels = labels;
    this.settings = settings;
    this.kept = [];
    this.label = "_silence_";
    this.time = -Infinity;
    this.repeats = repeats;
  }

  hear(scores, time) {
    const { window_ms: window, threshold, suppression_ms: suppression, minimum_count: count } = this.settings;
    this.kept.push([time, scores]);
    while (this.kept[0][0] < time - window) this.kept.shift();
    if (this.kept.length < count || time - this.kept[0][0] < Math.floor(window / 4)) return null;
    const averages = this.labels.map((_, i) => this.kept.reduce((sum, [, s]) => sum + s[i], 0) / this.kept.length);
    const best = averages.indexOf(Math.max(...averages)), label = this.labels[best];
    const since = this.label === "_silence_" ? Infinity : time - this.time;
    if (!(averages[best] > threshold && (this.repeats || label !== this.label) && since > suppression)) return null;
    this.label = label;
    this.time = time;
    return label.startsWith("_") ? null : { label, score: averages[best], time: time / 1000 };
  }
}
