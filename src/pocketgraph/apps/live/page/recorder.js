// Runs beside the page's own work: passes on what the microphone hears, a tenth of a second at a time.
registerProcessor("recorder", class extends AudioWorkletProcessor {
  constructor() {
    super();
    this.kept = new Float32Array(Math.round(sampleRate / 10));
    this.count = 0;
  }

  process([[samples]]) {
    if (!samples) return true;
    let from = 0;
    while (from < samples.length) {
      const some = Math.min(samples.length - from, this.kept.length - this.count);
      this.kept.set(samples.subarray(from, from + some), this.count);
      this.count += some;
      from += some;
      if (this.count === this.kept.length) {
        this.port.postMessage(this.kept.slice());
        this.count = 0;
      }
    }
    return true;
  }
});
