"""A camera that sees two things pass each other as fast as a page answers, what finds them, and what was counted."""

from typing import Any

from browsers import until

REDNESS = """
    x = Placeholder(dtype=float, shape=[1,48,64,3])
    w = Const(float [[[[1], [-0.5], [-0.5]]]])
    red = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
    near = AvgPool(red, T=float, ksize=[1,9,9,1], strides=[1,1,1,1], padding="SAME")
    half = Const(float 0.3)
    over = Sub(near, half, T=float)
    steep = Const(float 12)
    heat = Mul(over, steep, T=float)
    heatmap = Sigmoid(heat, T=float)
    zero = Const(float 0)
    none = Mul(near, zero, T=float)
    nine = Const(float [[[[9, 9]]]])
    size = Add(none, nine, T=float)
"""
"""The places of red things of 90 x 90 pixels, as heat map and sizes."""
MOVED_THINGS = """
navigator.mediaDevices.getUserMedia = async () => {
  const thing = Object.assign(document.createElement("canvas"), { width: 90, height: 90 }).getContext("2d");
  thing.fillStyle = "rgb(235, 20, 20)";
  thing.fillRect(0, 0, 90, 90);
  thing.fillStyle = "rgb(120, 10, 10)";
  for (let n = 0; n < 200; n++) thing.fillRect((37 * n) % 90, (53 * n * n) % 89, 1, 1);
  const pen = Object.assign(document.createElement("canvas"), { width: 640, height: 480 }).getContext("2d");
  let moved = 0; // by little between two pictures, however many answers there were meanwhile
  const draw = () => {
    const due = 430 * Math.min(1, Math.max(0, (Number(document.body.dataset.answers ?? 0) - 10) / 120));
    moved = Math.min(due, moved + 4);
    pen.fillStyle = "rgb(110, 110, 110)";
    pen.fillRect(0, 0, 640, 480);
    pen.drawImage(thing.canvas, Math.round(60 + moved), 60);
    pen.drawImage(thing.canvas, Math.round(490 - moved), 320);
  };
  draw();
  setInterval(draw, 20);
  return pen.canvas.captureStream(50);
};
"""
"""A page's camera of 640 x 480 pixels: two things wait for ten answers, pass each other in 120 or more, and wait."""


def crossings(page: Any) -> dict[str, str]:
    """The counts of a page when both things have crossed the line."""
    numbers = "Array.from(document.querySelectorAll('#numbers dt, #numbers dd'), (entry) => entry.textContent)"
    until(page, f"/inwards,1.*outwards,1/.test({numbers}.join())")
    found = page.evaluate(numbers)
    told = dict(zip(found[::2], found[1::2], strict=True))
    return {
        "in sight": told["in sight"],
        "inwards": told["crossed the line inwards"],
        "outwards": told["crossed the line outwards"],
        "followed": told["followed so far"],
    }
