// Boxes that are drawn and not yet decided, by photo. They outlive the page, as looking around does not end them.
export class Drafts {
  constructor(name) { this.name = name; this.kept = new Map(); }

  // The boxes of a photo; undefined where nothing was drawn since it was decided.
  of(path) {
    if (this.kept.has(path)) return this.kept.get(path);
    try { return JSON.parse(localStorage.getItem(`${this.name} ${path}`)) ?? undefined; } catch { return undefined; }
  }

  put(path, boxes) {
    this.kept.set(path, boxes);
    try { localStorage.setItem(`${this.name} ${path}`, JSON.stringify(boxes)); } catch { /* a full store: the page still has them */ }
  }

  drop(path) {
    this.kept.delete(path);
    try { localStorage.removeItem(`${this.name} ${path}`); } catch { /* no store: nothing is there */ }
  }
}
