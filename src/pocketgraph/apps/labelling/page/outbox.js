// Decisions that the server has not yet written to its disk. They outlive the page, and go again until it says so.
export class Outbox {
  constructor(name, address, tell) {
    this.name = name; this.address = address; this.tell = tell;
    try { this.queue = JSON.parse(localStorage.getItem(name)) ?? []; } catch { this.queue = []; }
    window.addEventListener("beforeunload", (event) => { if (this.queue.length) event.preventDefault(); });
  }

  waiting() { return [...this.queue]; }

  put(told) {
    this.queue.push({ ...told, id: key() });
    this.keep();
    this.send();
  }

  keep() { try { localStorage.setItem(this.name, JSON.stringify(this.queue)); } catch { /* a full store: the page still has them */ } }

  async send() {
    if (this.sending) return;
    this.sending = true;
    let wasAway = false;
    while (this.queue.length) {
      try {
        const reply = await fetch(this.address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(this.queue[0]) });
        if (reply.status >= 500) throw new Error(await reply.text());
        if (!reply.ok) { this.tell(`Not written: ${await reply.text()}`); this.queue.shift(); this.keep(); continue; }
        this.queue.shift();
        this.keep();
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

function key() { return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join(""); }
