// Pictures as numbers and back: resized as TensorFlow 1 resizes (no half-pixel shift), scaled as the model wants.
const GRAY = [19595, 38470, 7471];  // of 65536

function places(size, wanted) {
  const scale = Math.fround(size / wanted), found = [];
  for (let i = 0; i < wanted; i++) {
    const at = Math.fround(i * scale), low = Math.min(Math.floor(at), size - 1);
    found.push([low, Math.min(low + 1, size - 1), Math.fround(at - Math.floor(at))]);
  }
  return found;
}

// Numbers of a model's picture out of RGBA pixels; `input` says height, width, channels, mean, std, reversed, planes.
export function asInput({ data, width, height }, input, out) {
  const { channels, mean, std } = input;
  const across = places(width, input.width), down = places(height, input.height);
  const found = out || new Float32Array(input.height * input.width * channels);
  const order = input.reversed ? [2, 1, 0] : [0, 1, 2];
  let place = 0;
  const value = (row, column, channel) => {
    const at = 4 * (row * width + column);
    if (channels === 3) return data[at + order[channel]];
    return (GRAY[0] * data[at] + GRAY[1] * data[at + 1] + GRAY[2] * data[at + 2] + 32768) >> 16;
  };
  const f = Math.fround;
  const area = input.height * input.width;
  for (const [row, [top, bottom, lower]] of down.entries()) {
    for (const [column, [left, right, further]] of across.entries()) {
      for (let channel = 0; channel < channels; channel++) {
        const a = value(top, left, channel), b = value(top, right, channel);
        const c = value(bottom, left, channel), d = value(bottom, right, channel);
        const above = f(a + f(f(b - a) * further)), below = f(c + f(f(d - c) * further));
        const mixed = f(above + f(f(below - above) * lower));
        const to = input.planes ? channel * area + row * input.width + column : place++;
        found[to] = input.whole ? roundEven(mixed) : f(f(mixed - mean[channel]) / std[channel]);
      }
    }
  }
  return found;
}

export function roundEven(x) {
  const down = Math.floor(x), rest = x - down;
  return rest > 0.5 || (rest === 0.5 && down % 2 !== 0) ? down + 1 : down;
}

// One number for each of three channels: the picture's own where it has as many, else their mean.
function ofChannels(numbers, channels) {
  const mean = numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  return numbers.length === channels && channels === 3 ? numbers : [mean, mean, mean];
}

// An output as a picture: pixels, shares, or the input's own scale.
export function asPicture(values, shape, { mean = [0], std = [255] } = {}) {
  let [height, width, channels] = shape.slice(-3);
  const first = ![1, 3].includes(channels) && [1, 3].includes(height);
  if (first) [channels, height, width] = shape.slice(-3);
  if (![1, 3].includes(channels)) throw new Error(`The output ${shape} is no picture.`);
  let least = Infinity, most = -Infinity;
  for (const value of values) { if (value < least) least = value; if (value > most) most = value; }
  const own = mean.some((number) => number !== 0) && !(least >= -0.02 && most <= 1.02);
  const scales = own ? ofChannels(std, channels) : [255, 255, 255], shifts = own ? ofChannels(mean, channels) : [0, 0, 0];
  const scaled = values instanceof Uint8Array || most > 3 ? (v) => v : (v, c) => v * scales[c] + shifts[c];
  const image = new ImageData(width, height), area = width * height;
  for (let i = 0; i < area; i++) {
    for (let c = 0; c < 3; c++) {
      const from = channels === 1 ? i : first ? c * area + i : 3 * i + c;
      image.data[4 * i + c] = Math.trunc(Math.min(255, Math.max(0, scaled(values[from], c))));
    }
    image.data[4 * i + 3] = 255;
  }
  return image;
}
