// One photo that can be zoomed and moved, with boxes on it that are drawn by the mouse.
const STEPS = [1, 2, 4];
const SVG = "http://www.w3.org/2000/svg";
const SMALLEST = 4;   // pixels of the screen; less is a click

export class Panel {
  constructor(stage, address, draws) {
    this.zoom = 1; this.x = this.y = 0; this.mouse = null; this.draws = draws;
    this.figure = document.createElement("figure");
    this.figure.className = "panel";
    this.sheet = document.createElement("div");
    this.sheet.className = "sheet";
    this.photo = document.createElement("div");
    this.photo.className = "photo";
    this.image = new Image();
    this.image.alt = "";
    this.image.draggable = false;
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("viewBox", "0 0 1 1");
    this.svg.setAttribute("preserveAspectRatio", "none");
    this.photo.append(this.image, this.svg);
    this.sheet.append(this.photo);
    this.figure.append(this.sheet);
    stage.append(this.figure);
    this.image.addEventListener("load", () => { this.measure(); this.fit(); this.onready?.(); });
    this.image.addEventListener("error", () => this.onbroken?.());
    this.image.src = address;
    new ResizeObserver(() => this.fit()).observe(this.figure);
    this.listen();
  }

  caption(text) { this.figure.append(Object.assign(document.createElement("figcaption"), { textContent: text })); }

  measure() {   // as it is laid out: naturalWidth is that of the turned photo also where style does not turn it
    this.image.style.width = this.image.style.height = "auto";
    [this.wide, this.tall] = [this.image.offsetWidth, this.image.offsetHeight];
  }

  fit() {
    const { wide, tall } = this, { clientWidth, clientHeight } = this.figure;
    if (!wide || !clientWidth) return;
    const scale = Math.min(clientWidth / wide, clientHeight / tall);
    this.photo.style.width = this.image.style.width = `${wide * scale}px`;
    this.photo.style.height = this.image.style.height = `${tall * scale}px`;
    this.move();
  }

  move() { this.sheet.style.transform = `translate(${this.x}px, ${this.y}px) scale(${this.zoom})`; }

  zoomIn() { this.zoomTo(STEPS[(STEPS.indexOf(this.zoom) + 1) % STEPS.length] ?? 1); }

  zoomTo(zoom) {
    const edge = this.figure.getBoundingClientRect();
    const [x, y] = this.mouse ?? [edge.width / 2, edge.height / 2];
    const [px, py] = [x - edge.width / 2 - this.x, y - edge.height / 2 - this.y];
    const grow = zoom / this.zoom;
    [this.x, this.y] = zoom === 1 ? [0, 0] : [this.x - px * (grow - 1), this.y - py * (grow - 1)];
    this.zoom = zoom;
    this.move();
  }

  shares([x, y, width, height]) {
    return [x / this.wide, y / this.tall, width / this.wide, height / this.tall];
  }

  draw(boxes) {
    this.svg.replaceChildren(...boxes.map(({ box, hue }) => rectangle(box, hue)));
  }

  listen() {
    let from = null, moved = null;
    const place = (event) => {
      const edge = this.photo.getBoundingClientRect();
      const within = (value) => Math.min(Math.max(value, 0), 1);
      return [within((event.clientX - edge.left) / edge.width), within((event.clientY - edge.top) / edge.height)];
    };
    this.figure.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomTo(Math.min(Math.max(this.zoom * (event.deltaY < 0 ? 1.25 : 0.8), 1), 16));
    }, { passive: false });
    this.figure.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.figure.setPointerCapture(event.pointerId);
      if (this.draws) from = { at: place(event), screen: [event.clientX, event.clientY], shape: rectangle([0, 0, 0, 0], "#fff") };
      else moved = [event.clientX - this.x, event.clientY - this.y];
      if (from) this.svg.append(from.shape);
    });
    this.figure.addEventListener("pointermove", (event) => {
      const edge = this.figure.getBoundingClientRect();
      this.mouse = [event.clientX - edge.left, event.clientY - edge.top];
      if (from) set(from.shape, spanned(from.at, place(event)));
      if (moved && this.zoom > 1) { this.x = event.clientX - moved[0]; this.y = event.clientY - moved[1]; this.move(); }
    });
    this.figure.addEventListener("pointerup", (event) => {
      if (from) {
        from.shape.remove();
        const wide = Math.min(Math.abs(event.clientX - from.screen[0]), Math.abs(event.clientY - from.screen[1])) >= SMALLEST;
        const box = spanned(from.at, place(event));
        if (wide && box[2] > 0 && box[3] > 0) this.onbox?.(box);
      }
      from = moved = null;
    });
    this.figure.addEventListener("pointercancel", () => { from?.shape.remove(); from = moved = null; });
    this.figure.addEventListener("pointerleave", () => { this.mouse = null; });
  }
}

function spanned([x, y], [u, v]) { return [Math.min(x, u), Math.min(y, v), Math.abs(x - u), Math.abs(y - v)]; }

function rectangle(box, hue) {
  const shape = document.createElementNS(SVG, "rect");
  shape.style.setProperty("--hue", hue);
  set(shape, box);
  return shape;
}

function set(shape, [x, y, width, height]) {
  for (const [name, value] of Object.entries({ x, y, width, height })) shape.setAttribute(name, value);
}
