// What was found, drawn over the frame.
const COLOURS = ["#4285f4", "#db4437", "#f4b400", "#0f9d58", "#ab47bc", "#00acc1", "#ff7043", "#9e9d24", "#5c6bc0", "#f06292", "#00796b", "#c2185b"];

export function draw(pen, view, under, answer) {
  const { width, height } = view, stroke = Math.max(2, Math.min(width, height) / 160);
  pen.drawImage(under, 0, 0, width, height);
  pen.lineWidth = stroke;
  pen.font = `${Math.max(12, Math.min(width, height) / 26)}px system-ui, sans-serif`;
  pen.textBaseline = "bottom";
  pen.strokeStyle = COLOURS[3];
  for (const [x0, y0, x1, y1] of answer.lines || []) {
    pen.beginPath();
    pen.moveTo(x0 * width, y0 * height);
    pen.lineTo(x1 * width, y1 * height);
    pen.stroke();
  }
  (answer.detections || []).forEach((entry, number) => {
    const [top, left, bottom, right] = entry.box, w = (right - left) * width, h = (bottom - top) * height;
    const colour = COLOURS[((entry.id ?? number + 1) - 1) % COLOURS.length];
    pen.strokeStyle = pen.fillStyle = colour;
    pen.beginPath();
    pen.roundRect(left * width, top * height, w, h, Math.max(0, Math.min(w, h) / 8));
    pen.stroke();
    for (const [x, y] of entry.points || []) {
      pen.beginPath();
      pen.arc(x * width, y * height, stroke, 0, 2 * Math.PI);
      pen.fill();
    }
    const text = [entry.id ? `#${entry.id}` : "", entry.label || "", entry.score.toFixed(2)].filter(Boolean).join(" ");
    const size = pen.measureText(text).width, line = parseFloat(pen.font) * 1.3;
    const y = Math.max(line, top * height);
    pen.fillRect(left * width, y - line, size + 8, line);
    pen.fillStyle = "#fff";
    pen.fillText(text, left * width + 4, y - 2);
  });
}

export function drawSound(pen, view, wave, features) {
  const { width, height } = view, half = height / 2;
  pen.fillStyle = "#101418";
  pen.fillRect(0, 0, width, height);
  if (wave) {
    pen.strokeStyle = COLOURS[0];
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let x = 0; x < width; x++) {
      const value = wave[Math.floor((x * wave.length) / width)] || 0;
      pen.lineTo(x, half / 2 - value * half * 0.48);
    }
    pen.stroke();
  }
  if (features && features.length) {
    const bins = features[0].length, image = new ImageData(features.length, bins);
    features.forEach((column, x) => column.forEach((value, bin) => {
      const place = 4 * ((bins - 1 - bin) * features.length + x);
      image.data.set([value, Math.max(0, 2 * value - 255), 255 - Math.abs(2 * value - 255), 255], place);
    }));
    const small = new OffscreenCanvas(image.width, image.height);
    small.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, 0, half, width, half);
  }
}
