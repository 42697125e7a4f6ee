// Things followed over frames by how they move: detections matched to tracks, identities kept over an occlusion.
import { overlap } from "./decoders.js";

const OVERLAP = 0.2, REACH = 1.2, PATIENCE = 1.5, BIRTH = 2, MEMORY = 0.6;
const PAST = 0.1; // of its width that a thing's center is past the line when it has crossed it: places waver

export class Tracker {
  constructor() {
    this.line = 0.5;
    this.tracks = [];
    this.numbered = this.entered = this.left = this.confirmed = 0;
  }

  at(track, time) {
    const passed = Math.min(Math.max(time - track.time, 0), PATIENCE);
    return track.box.map((side, i) => side + track.speed[i % 2] * passed);
  }

  match(found, time) {
    const pairs = [];
    this.tracks.forEach((track, row) => {
      const box = this.at(track, time);
      found.forEach((entry, column) => {
        const near = track.label === entry.label ? likeness(box, entry.box) : 0;
        if (near > 0) pairs.push([near, row, column]);
      });
    });
    pairs.sort((a, b) => b[0] - a[0] || a[1] - b[1] || a[2] - b[2]);
    const rows = new Set(), columns = new Set(), result = [...found];
    for (const [, row, column] of pairs) {
      if (rows.has(row) || columns.has(column)) continue;
      rows.add(row);
      columns.add(column);
      this.met(this.tracks[row], found[column], time);
      result[column] = { ...found[column], id: this.tracks[row].id };
    }
    found.forEach((entry, column) => {
      if (columns.has(column)) return;
      const id = ++this.numbered;
      const track = { id, label: entry.label, box: entry.box, last: entry.box, time, seen: time, speed: [0, 0], hits: 1 };
      track.side = this.side(track);
      this.tracks.push(track);
      result[column] = { ...entry, id };
    });
    this.tracks = this.tracks.filter((track) => {
      const [top, left, bottom, right] = this.at(track, time), y = (top + bottom) / 2, x = (left + right) / 2;
      const lasts = time - track.seen <= (track.hits >= BIRTH ? PATIENCE : PATIENCE / 3);
      return lasts && y > -0.1 && y < 1.1 && x > -0.1 && x < 1.1;
    });
    return result;
  }

  met(track, entry, time) {
    const passed = time - track.seen;
    if (passed > 0) {
      const moved = [0, 1].map((i) => (entry.box[i] + entry.box[i + 2] - track.last[i] - track.last[i + 2]) / 2 / passed);
      track.speed = track.hits === 1 ? moved : moved.map((m, i) => MEMORY * track.speed[i] + (1 - MEMORY) * m);
    }
    Object.assign(track, { box: entry.box, last: entry.box, time, seen: time, hits: track.hits + 1 });
    if (track.hits === BIRTH) this.confirmed++;
    const side = this.side(track);
    if (side !== track.side) {
      if (side > 0) this.entered++;
      else this.left++;
    }
    track.side = side;
  }

  side(track) {
    const past = (track.box[1] + track.box[3]) / 2 - this.line;
    return track.side && Math.abs(past) < PAST * (track.box[3] - track.box[1]) ? track.side : past >= 0 ? 1 : -1;
  }

  counts() {
    const last = Math.max(...this.tracks.map((track) => track.seen));
    return { now: this.tracks.filter((track) => track.seen === last).length, in: this.entered, out: this.left, all: this.confirmed };
  }
}

function likeness(a, b) {
  const near = overlap(a, b);
  if (near >= OVERLAP) return 1 + near;
  const apart = Math.max(...[0, 1].map((i) => Math.abs(a[i] + a[i + 2] - b[i] - b[i + 2]) / 2
    / Math.max(a[i + 2] - a[i], b[i + 2] - b[i], 1e-6)));
  return apart <= REACH ? 1 - apart / (2 * REACH) : 0;
}
