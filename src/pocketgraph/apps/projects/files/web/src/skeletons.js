// People out of OpenPose's maps: peaks of parts, joined by the fields that point along limbs.
const PARTS = 18, STEPS = 10, LEAST_PARTS = 4;
const LIMBS = [[1, 2, 12], [1, 5, 20], [2, 3, 14], [3, 4, 16], [5, 6, 22], [6, 7, 24], [1, 8, 0], [8, 9, 2], [9, 10, 4],
  [1, 11, 6], [11, 12, 8], [12, 13, 10], [1, 0, 28], [0, 14, 30], [14, 16, 34], [0, 15, 32], [15, 17, 36]];

export function people(maps, shape, least) {
  const [rows, columns, depth] = shape.slice(-3);
  const at = (y, x, c) => maps[(y * columns + x) * depth + c];
  const peaks = Array.from({ length: PARTS }, (_, part) => {
    const found = [];
    for (let y = 0; y < rows; y++) for (let x = 0; x < columns; x++) {
      const value = at(y, x, part);
      if (value < least) continue;
      let peak = true;
      for (let i = Math.max(0, y - 1); i <= Math.min(rows - 1, y + 1); i++) {
        for (let j = Math.max(0, x - 1); j <= Math.min(columns - 1, x + 1); j++) if (at(i, j, part) > value) peak = false;
      }
      if (peak) found.push([y, x, value]);
    }
    return found;
  });
  const bodies = [];
  for (const [one, two, channel] of LIMBS) {
    for (const [i, j] of joined(peaks[one], peaks[two], (y, x, c) => at(y, x, 19 + channel + c))) {
      const mine = bodies.filter((body) => body.get(one) === i || body.get(two) === j);
      if (mine.length > 1 && ![...mine[0].keys()].some((part) => mine[1].has(part))) {
        for (const [part, peak] of mine[1]) mine[0].set(part, peak);
        bodies.splice(bodies.indexOf(mine[1]), 1);
      }
      if (mine.length) {
        if (!mine[0].has(one)) mine[0].set(one, i);
        if (!mine[0].has(two)) mine[0].set(two, j);
      } else bodies.push(new Map([[one, i], [two, j]]));
    }
  }
  const detections = [], lines = [];
  for (const body of bodies.filter((entry) => entry.size >= LEAST_PARTS)) {
    const places = new Map([...body].map(([part, i]) => [part, [(peaks[part][i][1] + 0.5) / columns, (peaks[part][i][0] + 0.5) / rows]]));
    const points = [...places.values()], xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
    const score = Math.min(1, [...body].reduce((sum, [part, i]) => sum + peaks[part][i][2], 0) / body.size);
    detections.push({ box: [Math.min(...ys), Math.min(...xs), Math.max(...ys), Math.max(...xs)], score, label: "person", points });
    for (const [one, two] of LIMBS) if (places.has(one) && places.has(two)) lines.push([...places.get(one), ...places.get(two)]);
  }
  return { detections, lines };
}

function joined(one, two, field) {
  const scored = [];
  one.forEach(([y0, x0], i) => two.forEach(([y1, x1], j) => {
    const length = Math.hypot(y1 - y0, x1 - x0);
    if (length === 0) return;
    let over = 0, sum = 0;
    for (let step = 0; step < STEPS; step++) {
      const y = Math.round(y0 + ((y1 - y0) * step) / (STEPS - 1)), x = Math.round(x0 + ((x1 - x0) * step) / (STEPS - 1));
      const along = (field(y, x, 0) * (x1 - x0) + field(y, x, 1) * (y1 - y0)) / length;
      sum += along;
      if (along > 0.05) over++;
    }
    if (over >= 0.7 * STEPS) scored.push([sum / STEPS, i, j]);
  }));
  const found = [];
  for (const [, i, j] of scored.sort((a, b) => b[0] - a[0])) if (found.every(([a, b]) => a !== i && b !== j)) found.push([i, j]);
  return found;
}
