"""Frames a second of the live page end to end in headless Chromium, what the way there and back adds, memory, tracking.

    python benchmarks/live.py MODEL.pb [--site DIST] [--minutes 0.5]

A made-up camera of 640 x 480 at 50 frames a second shows photos' colours in motion. ``--site`` is the dist/ of a page
that ``pocketgraph app web`` wrote and npm built; it is measured in the same run. Needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import pocketgraph
from browsers import browser  # the tests' Chromium
from pocketgraph.apps.live.answers import Detection
from pocketgraph.apps.live.choice import application
from pocketgraph.apps.live.server import LiveServer
from pocketgraph.apps.live.tracking import Tracker

ROOT = pathlib.Path(__file__).resolve().parent.parent
SITE_SERVER = ROOT / "src" / "pocketgraph" / "apps" / "projects" / "files" / "web" / "serve.mjs"


def video(place: pathlib.Path) -> pathlib.Path:
    """A moving picture of 640 x 480, 50 frames a second for two seconds."""
    rng = np.random.default_rng(0)
    light = np.kron(rng.integers(16, 235, (60, 160)), np.ones((8, 8))).astype(np.uint8)
    with open(place, "wb") as file:
        file.write(b"YUV4MPEG2 W640 H480 F50:1 Ip A1:1 C420jpeg\n")
        for number in range(100):
            file.write(b"FRAME\n" + light[:, 4 * number : 4 * number + 640].tobytes() + bytes([128]) * (2 * 320 * 240))
    return place


def resident(pid: int) -> float:
    """Megabytes that a process has in memory."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def watch(page: Any, url: str, seconds: float) -> tuple[float, float, float]:
    """Frames a second, and medians of what the model took and of the whole way, in ms."""
    page.goto(url)
    for _ in range(600):
        if int(page.evaluate("document.body.dataset.answers || 0")) > 5:
            break
        time.sleep(0.1)
    page.keyboard.press("d")
    before, begun = int(page.evaluate("document.body.dataset.answers")), time.monotonic()
    models, trips = [], []
    while time.monotonic() - begun < seconds:
        time.sleep(0.25)
        lines = dict(line.split(": ", 1) for line in page.inner_text("#debug").splitlines() if ": " in line)
        models.append(float(lines["Inference time"].removesuffix("ms")))
        trips.append(float(lines["There and back"].removesuffix("ms")))
    passed = time.monotonic() - begun
    return (int(page.evaluate("document.body.dataset.answers")) - before) / passed, median(models), median(trips)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--site", help="dist/ of a built page")
    parser.add_argument("--minutes", type=float, default=0.5)
    flags = parser.parse_args()
    seconds = 60 * flags.minutes
    server = LiveServer(application(pocketgraph.load(flags.model)), "model")
    url = server.bind()
    server.start()
    with tempfile.TemporaryDirectory() as folder:
        camera = video(pathlib.Path(folder) / "camera.y4m")
        fakes = ("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
        with browser((*fakes, f"--use-file-for-fake-video-capture={camera}")) as chromium:
            print(f"{'page':8} {'frames/s':>9} {'model ms':>9} {'way ms':>9} {'added ms':>9}")
            page = chromium.new_page(viewport={"width": 1000, "height": 800})
            watch(page, url, min(5, seconds))
            held = resident(os.getpid())
            rate, took, trip = watch(page, url, seconds)
            print(f"{'live':8} {rate:9.1f} {took:9.1f} {trip:9.1f} {trip - took:9.1f}")
            print(
                f"memory of the server: {held:.0f} MB, after {flags.minutes:g} minutes {resident(os.getpid()):.0f} MB"
            )
            page.close()
            if flags.site:
                node = shutil.which("node") or sys.exit("a built page is served by Node.js, which is not installed")
                served = subprocess.Popen(
                    [node, SITE_SERVER, "0"],
                    cwd=pathlib.Path(flags.site).resolve().parent,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                try:
                    assert served.stdout is not None
                    address = served.stdout.readline().strip()
                    rate, took, trip = watch(
                        chromium.new_page(viewport={"width": 1000, "height": 800}), address, seconds
                    )
                    print(f"{'web':8} {rate:9.1f} {took:9.1f} {trip:9.1f} {trip - took:9.1f}")
                finally:
                    served.kill()
    server.stop()
    print(f"tracker: {tracking():.1f} ms a frame of 640 x 480 with nine things (least of five medians)")


def tracking() -> float:
    """Milliseconds of one frame with nine things that move."""
    rng = np.random.default_rng(0)
    scene = np.kron(rng.integers(0, 255, (60, 160, 3)), np.ones((8, 8, 1))).astype(np.uint8)
    rounds = []
    for _ in range(5):
        tracker, times = Tracker(), []
        for number in range(40):
            frame = np.ascontiguousarray(scene[:, 2 * number : 2 * number + 640])
            found = [Detection((0.1 * i, 0.09 * i, 0.1 * i + 0.1, 0.09 * i + 0.1), 0.9) for i in range(9)]
            begun = time.perf_counter()
            tracker.see(frame, number / 25)
            if number % 5 == 0:
                tracker.match(found, number / 25)
            times.append(1000 * (time.perf_counter() - begun))
        rounds.append(median(times[5:]))
    return min(rounds)


if __name__ == "__main__":
    main()
