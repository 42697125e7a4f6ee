"""Draws the pictures of README.md, docs/seeing.md, tutorial.md and retraining.md: the demo's, and pages in Chromium.

python tools/draw_docs_pictures.py MODELS

MODELS is a folder with ``mobilenet_v1_025_128/frozen_graph.pb``, ``mtcnn_blaueck/mtcnn.pb``,
``poets_retrained_128/retrained_graph.pb`` and ``data_flower_photos``. Needs playwright and Chromium.
"""

from __future__ import annotations

import argparse
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from PIL import Image

from docs_site.folder import make

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
COLORS = 200  # of a palette: flat colours need no more, and the files stay small
WIDTH, HEIGHT, HIGHER = 1000, 620, 740  # pixels
SCALED = ("--input_mean=0", "--input_std=255")  # as the drawn model takes pixels
KEPT = 20  # photos of a class, on the page of `dataset check`


def pocketgraph(*arguments: object, folder: pathlib.Path | None = None) -> None:
    """Runs a command, in a folder."""
    command = [sys.executable, "-m", "pocketgraph", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)


def pages(models: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes the pages that are photographed."""
    flowers = models / "poets_retrained_128" / "retrained_graph.pb"
    pocketgraph(
        "quantize", flowers, f"--calibrate={models / 'data_flower_photos'}", "--limit=40", "-o", folder / "q.tflite"
    )
    pocketgraph(
        "view", flowers, "--measure", f"--quantization={folder / 'q.report.json'}", "-o", folder / "flowers.html"
    )  # fmt: skip
    pocketgraph("view", models / "mtcnn_blaueck" / "mtcnn.pb", "-o", folder / "mtcnn.html")
    pocketgraph(
        "transform_graph", models / "mobilenet_v1_025_128" / "frozen_graph.pb", "--inputs=input",
        "--outputs=MobilenetV1/Predictions/Reshape_1", "--transforms=mobile", "-o", folder / "small.pb",
        "--view", folder / "chain.html",
    )  # fmt: skip
    made = make(folder / "tutorial")
    pocketgraph("retrain", made / "mobilenet.pb", f"--image_dir={made / 'photos'}", "-o", made / "flowers.pb",
                f"--output_labels={made / 'labels.txt'}")  # fmt: skip
    pocketgraph("ship", made / "flowers.pb", f"--data={made / 'photos'}", f"--labels={made / 'labels.txt'}",
                "--target=android", "-o", folder / "out")  # fmt: skip
    mislabelled(made / "photos")
    pocketgraph("dataset", "check", "photos/", "--model=mobilenet.pb", "-o", "check.html", folder=made)
    pocketgraph("quantize", "flowers.pb", "--calibrate=photos/", "-o", "small.tflite", *SCALED, folder=made)
    retrained_page(models, folder)


def mislabelled(photos: pathlib.Path) -> None:
    """Leaves sharp copies of a few photos, three of them in wrong folders."""
    for path in sorted(photos.rglob("*.jpg")):
        picture = Image.open(path).resize((96, 96), Image.Resampling.NEAREST)
        if int(path.stem[-2:]) >= KEPT:
            path.unlink()
        else:
            picture.save(path, quality=95)
    (photos / "roses" / "roses_03.jpg").rename(photos / "tulips" / "IMG_0412.jpg")
    (photos / "daisy" / "daisy_08.jpg").rename(photos / "roses" / "IMG_0519.jpg")
    (photos / "tulips" / "tulips_05.jpg").rename(photos / "daisy" / "IMG_0533.jpg")


@contextmanager
def live(folder: pathlib.Path) -> Iterator[str]:
    """The address of the live page."""
    command = [sys.executable, "-m", "pocketgraph", "live", "small.tflite", "--labels=labels.txt", "--port=0",
               "--no-browser", *SCALED]  # fmt: skip
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = ""
        for line in server.stdout or ():
            said += line
            if found := re.search(r"http://\S+", line):
                yield found.group()
                return
        sys.exit(f"the live page did not start: {said}")
    finally:
        server.terminate()
        server.wait()


def retrained_page(models: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes the page of a retrained model; folders go by the names that the guide gives them."""
    (folder / "photos").symlink_to(models / "data_flower_photos")
    base = models / "mobilenet_v1_025_128" / "frozen_graph.pb"
    pocketgraph("retrain", base, "--image_dir=photos", "-o", "retrained.pb", folder=folder)


def photograph(page: Any, name: str) -> int:
    """Saves what the page shows; gives the file's bytes."""
    page.wait_for_timeout(300)
    return saved(Image.open(io.BytesIO(page.screenshot())), name)


def saved(picture: Image.Image, name: str) -> int:
    """Saves a picture with few colours; gives the file's bytes."""
    path = DOCS / f"{name}.png"
    few = picture.convert("RGB").quantize(COLORS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    return path.stat().st_size


def demo_picture() -> int:
    """Saves the picture that the demo ends with; gives the file's bytes."""
    digits = DOCS.parent / "examples" / "digits"
    subprocess.run([sys.executable, digits / "demo.py"], check=True, stdout=subprocess.DEVNULL)
    return saved(Image.open(digits / "out" / "report.png"), "demo")


def live_picture(browsers: Any, chromium: str, folder: pathlib.Path) -> int:
    """Saves the live page before a made-up camera; gives the file's bytes."""
    seen = folder / "camera.mjpeg"
    Image.open(folder / "photo.jpg").resize((320, 240)).save(seen, "JPEG", quality=95)
    flags = ["--no-sandbox", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
             f"--use-file-for-fake-video-capture={seen}"]  # fmt: skip
    browser = browsers.launch(executable_path=chromium, args=flags)
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    with live(folder) as address:
        page.goto(address)
        page.wait_for_selector("#classes li span")
        size = photograph(page, "retraining-live")
    browser.close()
    return size


def main() -> None:
    """Draws all of them."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    models = parser.parse_args().models.resolve()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is not installed (apt-get install chromium)")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as started:
        folder = pathlib.Path(scratch)
        pages(models, folder)
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})

        def open_page(name: str, scheme: str = "light") -> None:
            page.emulate_media(color_scheme=scheme)
            page.goto((folder / name).as_uri())

        sizes = []
        open_page("flowers.html")
        page.select_option("#color", "time")
        page.click("#panel li button >> nth=1")
        sizes.append(photograph(page, "seeing-view"))
        open_page("mtcnn.html", "dark")
        page.fill("#search", "NextIteration")
        page.click("#panel li button")
        sizes.append(photograph(page, "seeing-loop"))
        open_page("chain.html")
        page.select_option("#steps", label="3 fold_batch_norms")
        page.click("#panel >> text=/batchnorm.mul_1/ >> nth=0")
        sizes.append(photograph(page, "seeing-chain"))
        open_page("q.report.html")
        sizes.append(photograph(page, "seeing-report"))
        open_page("out/ship.html")
        sizes.append(photograph(page, "tutorial-ship"))
        open_page("retrained.html")
        sizes.append(photograph(page, "seeing-retrained"))
        open_page("tutorial/check.html")
        page.set_viewport_size({"width": WIDTH, "height": HIGHER})
        sizes.append(photograph(page, "retraining-check"))
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        open_page("tutorial/small.report.html")
        sizes.append(photograph(page, "retraining-small"))
        browser.close()
        sizes.append(live_picture(started.chromium, chromium, folder / "tutorial"))
    sizes.append(demo_picture())
    print(f"{len(sizes)} pictures in {DOCS}: {sum(sizes):,} bytes")


if __name__ == "__main__":
    main()
