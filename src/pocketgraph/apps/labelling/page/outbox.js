// Decisions that the server has not yet written to its disk. They outlive the page, and go again until it says so.
export class Outbox {
  constructor(name, address, tell) {
    this.name = name; this.address = address; this.tell = tell;
    this.queue = stored(name);
    window.addEventListener("beforeunload", (event) => { if (this.queue.length) event.preventDefault(); });
  }

  waiting() { return [...this.queue]; }

  put(told) {
    const decision = { ...told, id: key() };
    this.queue.push(decision);
    // An item each: what another tab of the same rater keeps stays.
    try { localStorage.setItem(`${this.name} ${decision.id}`, JSON.stringify(decision)); } catch { /* a full store: the page still has them */ }
    this.send();
  }

  done() { try { localStorage.removeItem(`${this.name} ${this.queue.shift().id}`); } catch { /* no store: nothing is there */ } }

  async send() {
    if (this.sending) return;
    this.sending = true;
    let wasAway = false;
    while (this.queue.length) {
      try {
        const reply = await fetch(this.address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(this.queue[0]) });
        if (reply.status >= 500 || reply.status === 403) throw new Error(await reply.text());
        if (!reply.ok) { this.tell(`Not written: ${await reply.text()}`); this.done(); continue; }
        this.done();
        if (wasAway) { this.tell(""); wasAway = false; }
      } catch (error) {
        wasAway = true;
        const why = error instanceof TypeError ? "the server is away; start the command again" : error.message;
        this.tell(`${this.queue.length} ${this.queue.length === 1 ? "decision waits" : "decisions wait"}: ${why}. Nothing is lost.`);
        await new Promise((done) => setTimeout(done, 500));
      }
    }
    this.sending = false;
  }

  async empty() { while (this.queue.length) await new Promise((done) => setTimeout(done, 50)); }
}

// What tabs of before left, in the order in which it was decided.
function stored(name) {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(`${name} `)).sort();
    return keys.map((key) => JSON.parse(localStorage.getItem(key)));
  } catch { return []; }
}

// Names a decision; later ones sort behind earlier ones.
let last = 0;
function key() {
  last = Math.max(Date.now(), last + 1);
  return last.toString(36).padStart(10, "0") + random();
}

function random() { return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join(""); }
