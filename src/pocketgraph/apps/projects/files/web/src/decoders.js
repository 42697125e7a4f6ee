// What a detector's outputs mean, family by family; boxes are top, left, bottom, right as shares of the picture.
const YOLO_ANCHORS = [1.08, 1.19, 3.42, 4.41, 6.63, 11.38, 9.42, 5.11, 16.62, 10.52];
const LARGEST_SHARE = 2; // that a box reaches beyond its picture; more are pixels
const SSD_SCALES = [10, 10, 5, 5];

export const sigmoid = (x) => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)));
const cut = (x) => Math.min(1, Math.max(0, x));
const clipped = (entry) => ({ ...entry, box: entry.box.map(cut) });

export function overlap(a, b) {
  const inside = Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) * Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));
  const area = ([top, left, bottom, right]) => Math.max(0, bottom - top) * Math.max(0, right - left);
  const union = area(a) + area(b) - inside;
  return union > 0 ? inside / union : 0;
}

export function withoutOverlaps(found, most = 0.5, count = 100) {
  const kept = [];
  for (const entry of [...found].sort((a, b) => b.score - a.score)) {
    if (kept.length === count) break;
    if (kept.every((other) => other.label !== entry.label || overlap(entry.box, other.box) <= most)) kept.push(entry);
  }
  return kept;
}

function named(how, index, first = 0) {
  const place = index - first;
  return place >= 0 && place < how.labels.length ? how.labels[place] : `class ${index}`;
}

const rows = (values, size) => Array.from({ length: values.length / size }, (_, i) => Array.from(values.subarray(i * size, (i + 1) * size)));

function api(found, how, fromZero) {
  const boxes = rows(found.boxes, 4), count = found.count ? found.count[0] : boxes.length;
  const first = (fromZero ? 0 : 1) - (how.labels[0] === "???" ? 1 : 0);
  return boxes.flatMap((box, i) => (i >= count || found.scores[i] < how.least ? []
    : [clipped({ box, score: found.scores[i], label: found.classes ? named(how, Math.round(found.classes[i]), first) : "" })]));
}

function selected(found, how) {
  const inPixels = found.boxes.reduce((most, side) => Math.max(most, side), 0) > LARGEST_SHARE;
  const size = inPixels ? [how.height, how.width] : [1, 1];
  return api({ ...found, boxes: found.boxes.map((side, i) => side / size[i % 2]) }, how, true);
}

function multibox(found, how) {
  const some = [];
  rows(found.boxes, 4).forEach((coded, i) => {
    const score = sigmoid(found.scores[i]);
    if (score < how.least) return;
    const [left, top, right, bottom] = coded.map((v, j) => cut(v * how.anchors[8 * i + 2 * j + 1] + how.anchors[8 * i + 2 * j]));
    some.push({ box: [top, left, bottom, right], score, label: "" });
  });
  return withoutOverlaps(some, how.overlap);
}

function ssd(found, how) {
  const classes = found.scores.length / (found.boxes.length / 4), some = [];
  const logits = found.scores.some((score) => score < 0 || score > 1);
  const first = how.labels[0] === "???" ? 1 : 0;
  rows(found.boxes, 4).forEach((coded, i) => {
    let box = null;
    for (let j = 1; j < classes; j++) {
      const raw = found.scores[i * classes + j], score = logits ? sigmoid(raw) : raw;
      if (score < how.least) continue;
      if (!box) {
        const [ay, ax, ah, aw] = how.anchors.slice(4 * i, 4 * i + 4), [y, x, h, w] = coded.map((v, k) => v / SSD_SCALES[k]);
        const cy = y * ah + ay, cx = x * aw + ax, hh = Math.exp(Math.min(h, 50)) * ah / 2, hw = Math.exp(Math.min(w, 50)) * aw / 2;
        box = [cy - hh, cx - hw, cy + hh, cx + hw];
      }
      some.push(clipped({ box, score, label: named(how, j - 1 + first) }));
    }
  });
  return withoutOverlaps(some, how.overlap);
}

function yolo(found, how, shapes) {
  const [height, width, depth] = shapes.grid.slice(-3), anchors = how.anchors || YOLO_ANCHORS;
  const boxes = anchors.length / 2, size = depth / boxes, some = [];
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) for (let b = 0; b < boxes; b++) {
    const v = found.grid.subarray((y * width + x) * depth + b * size, (y * width + x) * depth + (b + 1) * size);
    const logits = Array.from(v.subarray(5)), top = Math.max(...logits);
    const total = logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0);
    const score = sigmoid(v[4]) / total;
    if (score < how.least) continue;
    const cy = (y + sigmoid(v[1])) / height, cx = (x + sigmoid(v[0])) / width;
    const h = Math.exp(Math.min(v[3], 50)) * anchors[2 * b + 1] / height, w = Math.exp(Math.min(v[2], 50)) * anchors[2 * b] / width;
    some.push(clipped({ box: [cy - h / 2, cx - w / 2, cy + h / 2, cx + w / 2], score, label: named(how, logits.indexOf(top)) }));
  }
  return withoutOverlaps(some, how.overlap);
}

function heatMaps(found, how, shapes) {
  const [height, width, classes] = shapes.heat.slice(-3), some = [];
  const logits = found.heat.some((v) => v < 0 || v > 1);
  const at = (y, x, c) => (y < 0 || x < 0 || y >= height || x >= width ? -Infinity : found.heat[(y * width + x) * classes + c]);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) for (let c = 0; c < classes; c++) {
    const raw = at(y, x, c), score = logits ? sigmoid(raw) : raw;
    if (score < how.least) continue;
    let peak = true;
    for (let i = -1; i <= 1; i++) for (let j = -1; j <= 1; j++) if (at(y + i, x + j, c) > raw) peak = false;
    if (!peak) continue;
    const place = 2 * (y * width + x), [w, h] = found.sizes ? found.sizes.subarray(place, place + 2) : [1, 1];
    const [ox, oy] = found.offsets ? found.offsets.subarray(place, place + 2) : [0.5, 0.5];
    const cy = y + oy, cx = x + ox;
    some.push(clipped({ box: [(cy - h / 2) / height, (cx - w / 2) / width, (cy + h / 2) / height, (cx + w / 2) / width], score, label: named(how, c) }));
  }
  return withoutOverlaps(some, how.overlap);
}

function faces(found, how) {
  return rows(found.boxes, 4).flatMap((box, i) => {
    if (found.scores[i] < how.least) return [];
    const marks = Array.from(found.points.subarray(10 * i, 10 * i + 10));
    const points = [0, 1, 2, 3, 4].map((j) => [marks[5 + j] / how.width, marks[j] / how.height]);
    return [clipped({ box: box.map((v, j) => v / (j % 2 ? how.width : how.height)), score: found.scores[i], label: "", points })];
  });
}

// `found` has the outputs by part, `shapes` their shapes; `how`: labels, least, overlap, anchors, height, width.
export const DECODERS = {
  detection_api: (found, how) => api(found, how, false),
  postprocessed: (found, how) => api(found, how, true),
  selected, multibox, ssd, yolo, heat_maps: heatMaps, mtcnn: faces,
};
