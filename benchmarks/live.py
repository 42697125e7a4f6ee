"""Frames a second of the live page end to end in headless Chromium, what the way there and back adds, memory, tracking.

    python benchmarks/live.py MODEL.pb [--site DIST] [--minutes 0.5] [--rate 50]

A made-up camera of 640 x 480 at ``--rate`` frames a second shows photos' colours in motion. ``--site`` is the dist/ of
a page that ``pocketgraph app web`` wrote and npm built; it is measured in the same run. Memory is that of this program,
of the process that shows the page, and of the JavaScript after a garbage collection; with ``--minutes 10`` a leak
would show. Needs Chromium and playwright.
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
from pocketgraph.apps.detections import Detection
from pocketgraph.apps.live.application_choice import application
from pocketgraph.apps.live.live_server import LiveServer
from pocketgraph.apps.live.tracking import Tracker

ROOT = pathlib.Path(__file__).resolve().parent.parent
SITE_SERVER = ROOT / "src" / "pocketgraph" / "apps" / "projects" / "files" / "web" / "serve.mjs"


def video(place: pathlib.Path, rate: int) -> pathlib.Path:
    """A moving picture of 640 x 480, 100 frames."""
    rng = np.random.default_rng(0)
    light = np.kron(rng.integers(16, 235, (60, 160)), np.ones((8, 8))).astype(np.uint8)
    with open(place, "wb") as file:
        file.write(b"YUV4MPEG2 W640 H480 F%d:1 Ip A1:1 C420jpeg\n" % rate)
        for number in range(100):
            file.write(b"FRAME\n" + light[:, 4 * number : 4 * number + 640].tobytes() + bytes([128]) * (2 * 320 * 240))
    return place


def own(pid: int) -> float:
    """Megabytes that a process has in memory for itself: the frames of a camera lie in memory that it shares."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return next(int(line.split()[1]) / 1e3 for line in status.splitlines() if line.startswith("RssAnon"))


def renderers() -> float:
    """Megabytes of the processes that show pages, of the browser that this program started."""
    parents, showing = {}, []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if b"--type=renderer" in (entry / "cmdline").read_bytes():
                showing.append(int(entry.name))
        except OSError:
            continue

    def is_ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and is_ours(parents[pid]))

    return sum(own(pid) for pid in showing if is_ours(pid))


def memory(page: Any) -> tuple[float, float, float]:
    """Megabytes of this process, of the pages' processes, and of the page's JavaScript."""
    inspector = page.context.new_cdp_session(page)
    inspector.send("HeapProfiler.collectGarbage")
    inspector.send("Performance.enable")
    told = {entry["name"]: entry["value"] for entry in inspector.send("Performance.getMetrics")["metrics"]}
    inspector.detach()
    return own(os.getpid()), renderers(), told["JSHeapUsedSize"] / 1e6


def measured(page: Any, url: str, name: str, seconds: float) -> None:
    """Prints a page's row, and what happened to memory while it was watched."""
    watch(page, url, min(20, seconds))
    before = memory(page)
    rate, took, trip = watch(page, None, seconds)
    after = memory(page)
    print(f"{name:8} {rate:9.1f} {took:9.1f} {trip:9.1f} {trip - took:9.1f}")
    parts = ("this program", "the page's process", "its JavaScript")
    shown = "; ".join(f"{part} {b:.1f} to {a:.1f} MB" for part, b, a in zip(parts, before, after, strict=True))
    print(f"  in {seconds / 60:g} minutes: {shown}", flush=True)


def watch(page: Any, url: str | None, seconds: float) -> tuple[float, float, float]:
    """Frames a second, and medians of what the model took and of the whole way, in ms; None for a page that is open."""
    if url is not None:
        page.goto(url)
    for _ in range(600):
        if int(page.evaluate("document.body.dataset.answers || 0")) > 5:
            break
        time.sleep(0.1)
    if page.evaluate("document.querySelector('#debug').hidden"):
        page.keyboard.press("d")
    before, begun = int(page.evaluate("document.body.dataset.answers")), time.monotonic()
    models, trips = [], []
    while time.monotonic() - begun < seconds:
        time.sleep(0.25 if seconds < 120 else 2)
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
    parser.add_argument("--rate", type=int, default=50, help="frames a second of the camera")
    flags = parser.parse_args()
    seconds = 60 * flags.minutes
    server = LiveServer(application(pocketgraph.load(flags.model)), "model")
    url = server.bind()
    server.start()
    with tempfile.TemporaryDirectory() as folder:
        camera = video(pathlib.Path(folder) / "camera.y4m", flags.rate)
        fakes = ("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
        with browser((*fakes, f"--use-file-for-fake-video-capture={camera}")) as chromium:
            print(f"{'page':8} {'frames/s':>9} {'model ms':>9} {'way ms':>9} {'added ms':>9}")
            page = chromium.new_page(viewport={"width": 1000, "height": 800})
            measured(page, url, "live", seconds)
            page.close()
            if flags.site:
                node = shutil.which("node") or sys.exit("a built page is served by Node.js, which is not installed")
                place = pathlib.Path(flags.site).resolve().parent
                served = subprocess.Popen([node, SITE_SERVER, "0"], cwd=place, stdout=subprocess.PIPE, text=True)
                try:
                    assert served.stdout is not None
                    page = chromium.new_page(viewport={"width": 1000, "height": 800})
                    measured(page, served.stdout.readline().strip(), "web", seconds)
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
