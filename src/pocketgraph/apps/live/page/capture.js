// The camera, the microphone, and photos; what goes wrong is said in words that tell what to do.
const LONGEST = 640, PATIENCE = 1000;

function reason(error, what, other) {
  if (error.name === "NotAllowedError") return `The browser keeps the ${what} back. Allow it beside the address and try again${other}.`;
  if (error.name === "NotFoundError" || error.name === "OverconstrainedError") return `There is no ${what} here. Plug one in and try again${other}.`;
  if (error.name === "NotReadableError") return `Another program uses the ${what}. Close it and try again${other}.`;
  return `The ${what} does not start: ${error.message}`;
}

// A stream of the camera or microphone; an error says in words why there is none.
async function streamOf(what, wanted) {
  const other = what === "camera" ? ", or choose a photo" : "";
  if (!navigator.mediaDevices) {
    throw new Error(`Pages get a ${what} over https or from this machine itself only. Open the https address of this page${other}.`);
  }
  try {
    return await navigator.mediaDevices.getUserMedia(wanted);
  } catch (error) {
    throw new Error(reason(error, what, other));
  }
}

export class Camera {
  constructor(video, ended) {
    this.video = video;
    this.ended = ended;
    this.canvas = document.createElement("canvas");
    this.pen = this.canvas.getContext("2d", { willReadFrequently: true });
    this.time = -1;
  }

  async open() {
    this.stream = await streamOf("camera", {
      video: { width: { ideal: 640 }, height: { ideal: 480 }, facingMode: { ideal: "environment" } },
    });
    for (const track of this.stream.getVideoTracks()) {
      track.addEventListener("ended", () => {
        this.video.srcObject = null;  // its time would go on, with the last picture
        this.ended("The camera was unplugged or taken away. Plug it in and try again.");
      });
    }
    this.video.srcObject = this.stream;
    await this.video.play();
  }

  // A canvas with the newest frame, turned and mirrored; null while there is no new one.
  frame({ turn, mirror }) {
    const video = this.video;
    if (!video.videoWidth || video.currentTime === this.time) return null;
    this.time = video.currentTime;
    const scale = Math.min(1, LONGEST / Math.max(video.videoWidth, video.videoHeight));
    const width = Math.round(video.videoWidth * scale), height = Math.round(video.videoHeight * scale);
    const across = turn % 180 === 0;
    const [w, h] = across ? [width, height] : [height, width];
    if (this.canvas.width !== w || this.canvas.height !== h) { this.canvas.width = w; this.canvas.height = h; }
    this.pen.save();
    if (mirror) { this.pen.translate(w, 0); this.pen.scale(-1, 1); }
    this.pen.translate(w / 2, h / 2);
    this.pen.rotate((turn * Math.PI) / 180);
    this.pen.drawImage(video, -width / 2, -height / 2, width, height);
    this.pen.restore();
    return this.canvas;
  }
}

export class Microphone {
  constructor(heard, ended, rate) {
    this.heard = heard;
    this.ended = ended;
    this.rate = rate;
  }

  async open() {
    const stream = await streamOf("microphone", {
      audio: { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false },
    });
    for (const track of stream.getAudioTracks()) {
      track.addEventListener("ended", () => this.ended("The microphone was unplugged. Plug it in and try again."));
    }
    this.stream = stream;
    const context = this.context = new AudioContext(this.rate ? { sampleRate: this.rate } : {});
    await context.audioWorklet.addModule("recorder.js");
    const recorder = new AudioWorkletNode(context, "recorder");
    recorder.port.onmessage = (event) => this.heard(event.data, context.sampleRate);
    context.createMediaStreamSource(stream).connect(recorder);
    // Where a click is needed first, resume() ends only after it.
    await Promise.race([context.resume(), new Promise((resolve) => { setTimeout(resolve, PATIENCE); })]);
    if (context.state !== "running") throw new Error("The browser waits for a click before it listens.");
  }
}

// Gives the device back before it is opened again.
export function closed(source) {
  for (const track of source?.stream?.getTracks() ?? []) track.stop();
  if (source?.video) source.video.srcObject = null;
  source?.context?.close();
}

export async function photoOf(file) {
  const bitmap = await createImageBitmap(file);
  const canvas = document.createElement("canvas");
  const scale = Math.min(1, (2 * LONGEST) / Math.max(bitmap.width, bitmap.height));
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas;
}

// A page cannot write into a folder: what is kept is a download.
export function keep(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
