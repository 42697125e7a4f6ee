// The model runs where the page came from; frames and answers go over a WebSocket.
const PICTURE = 1, SOUND = 2, TICK = 3;

export class Engine {
  constructor(handlers) {
    this.handlers = handlers;
    this.busy = false;
    this.identity = 0;
    this.sent = new Map();
    this.picture = null;
  }

  async open() {
    const response = await fetch(`about${location.search}`).catch(() => {
      throw new Error("The command does not answer. Is it still running?");
    });
    if (!response.ok) throw new Error((await response.text()).trim());
    this.about = await response.json();
    const address = new URL(`stream${location.search}`, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = (event) => this.received(event.data);
    this.socket.onclose = (event) => this.handlers.lost(event.reason || "The command was stopped, or its machine cannot be reached.");
    await new Promise((resolve) => { this.socket.onopen = resolve; });
    return this.about;
  }

  async received(data) {
    if (typeof data !== "string") {
      this.picture = createImageBitmap(new Blob([data.slice(4)], { type: "image/jpeg" }));
      return;
    }
    const answer = JSON.parse(data);
    if (answer.settings) { this.handlers.settings(answer.settings); return; }
    if (answer.report) { this.reported(answer.report); return; }
    if (answer.ended) { this.handlers.lost("This is the end of it."); return; }
    if (answer.error && answer.id === undefined) { this.handlers.answered(answer); return; }
    const picture = this.picture;
    this.picture = null;
    if (picture) {
      answer.picture = await picture;
      if (this.about.source === "server") this.handlers.frame(answer.picture);
    }
    answer.trip = performance.now() - (this.sent.get(answer.id) ?? performance.now());
    this.sent.delete(answer.id);
    this.busy = false;
    answer.ms ??= 0;
    this.handlers.answered(answer);
    if (this.about.source === "server") this.socket.send(JSON.stringify({ ack: answer.id }));
  }

  message(kind, body, ...numbers) {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    this.identity = (this.identity + 1) >>> 0;
    const head = new DataView(new ArrayBuffer(5 + 4 * numbers.length));
    head.setUint8(0, kind);
    head.setUint32(1, this.identity, true);
    numbers.forEach((number, i) => head.setUint32(5 + 4 * i, number, true));
    this.sent.set(this.identity, performance.now());
    if (this.sent.size > 200) this.sent.delete(this.sent.keys().next().value);
    this.socket.send(new Blob([head.buffer, body]));
  }

  async look(canvas) {
    this.busy = true;
    const blob = await new Promise((resolve) => { canvas.toBlob(resolve, "image/jpeg", 0.85); });
    if (blob) this.message(PICTURE, blob);
    else this.busy = false;
  }

  again() {
    this.busy = true;
    this.message(TICK, new ArrayBuffer(0));
  }

  listen(samples, rate) { this.message(SOUND, samples.buffer, rate); }

  tell(what) { if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(what)); }

  change(name, value) { this.tell({ set: name, value }); }

  stats() { this.tell({ stats: true }); }

  remember(name) { this.tell({ remember: name }); }

  report() {
    this.tell({ report: true });
    return new Promise((resolve) => { this.reported = resolve; });
  }

  async save(canvas, label) {
    const blob = await new Promise((resolve) => { canvas.toBlob(resolve, "image/jpeg", 0.95); });
    const address = new URL(`still${location.search}`, location.href);
    address.searchParams.set("label", label);
    const response = await fetch(address, { method: "POST", body: blob });
    if (!response.ok) throw new Error((await response.text()).trim());
    return (await response.json()).saved;
  }
}
