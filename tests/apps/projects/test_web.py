"""A page of ``app web``, built by npm and opened in Chromium: it answers as the model does, offline too."""

import json
import pathlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from browsers import browser, watched
from command_line import call
from pocketgraph.apps.label_image import Labeler
from pocketgraph.apps.projects import make_project
from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.errors import UsageError
from pocketgraph.graph.text import parse
from support import model_dir, needs_shared

NPM = shutil.which("npm")
FAKE = ("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
WORDS = ["_silence_", "_unknown_", "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]


def built(site: pathlib.Path) -> None:
    """npm ci && npm run build; skips where npm or its registry is not there."""
    if NPM is None:
        pytest.skip("npm is not installed (apt-get install npm)")
    fetched = subprocess.run([NPM, "ci"], cwd=site, capture_output=True, text=True, timeout=300)
    if fetched.returncode != 0 and any(
        word in fetched.stderr for word in ("ENOTFOUND", "ECONNREFUSED", "EAI_AGAIN", "E404")
    ):
        pytest.skip(f"npm's registry is not there: {fetched.stderr.strip().splitlines()[-1]}")
    assert fetched.returncode == 0, fetched.stderr
    done = subprocess.run([NPM, "run", "build"], cwd=site, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@contextmanager
def served(site: pathlib.Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    node = shutil.which("node")
    assert node is not None
    server = subprocess.Popen([node, "serve.mjs", "0"], cwd=site, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip(), server
    finally:
        server.kill()


def until(page: Any, condition: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not page.evaluate(f"Boolean({condition})"):
        assert time.monotonic() < end, f"{condition}: {page.inner_text('body')}"
        time.sleep(0.1)


@needs_shared
def test_the_page_gives_the_class_of_label_image_without_a_network(tmp_path: pathlib.Path) -> None:
    model = model_dir("mobilenet_v1_025_128")
    labels = read_labels(model / "labels.txt")
    photo = model_dir("data_tflite_support_images") / "burger.jpg"
    (best,) = Labeler(pocketgraph.load(model / "frozen_graph.pb"), labels).label(photo, top=1)
    site = tmp_path / "site"
    assert call("app", "web", model / "frozen_graph.pb", "-o", site, f"--labels={model / 'labels.txt'}") == 0
    built(site)
    Image.open(photo).convert("RGB").resize((640, 480)).save(tmp_path / "photo.mjpeg", "JPEG", quality=95)
    with (
        served(site) as (url, server),
        browser((*FAKE, f"--use-file-for-fake-video-capture={tmp_path / 'photo.mjpeg'}")) as chromium,
    ):
        page = chromium.new_page(viewport={"width": 400, "height": 800})
        wrong = watched(page)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        until(page, f"document.querySelector('#classes li span')?.textContent === {json.dumps(best.label)}")
        assert float(page.evaluate("document.body.dataset.difference")) < 1e-4
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert all(address.startswith((url, "blob:")) for address in asked)
        assert not [text for text in wrong if "SyntaxError" in text or "TypeError" in text]
        page.evaluate("navigator.serviceWorker.ready.then(() => { window.kept = true; })")
        until(page, "window.kept")
        server.kill()
        server.wait()
        page.reload()
        until(page, "document.querySelector('#classes li')")


@needs_shared
def test_a_spoken_word_in_the_browser(tmp_path: pathlib.Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(WORDS))
    site = tmp_path / "site"
    graph = model_dir("kws_ds_cnn_s") / "DS_CNN_S.pb"
    assert call("app", "web", graph, "-o", site, f"--labels={tmp_path / 'words.txt'}") == 0
    told = json.loads((site / "public" / "model.json").read_text())
    assert [step["op"] for step in told["front"]] == ["AudioSpectrogram", "Mfcc"]
    assert told["samples"] == told["rate"] == 16000
    built(site)
    recording = model_dir("data_speech_wavs") / "yes_1000ms.wav"
    with served(site) as (url, _), browser((*FAKE, f"--use-file-for-fake-audio-capture={recording}")) as chromium:
        page = chromium.new_page()
        page.goto(url)
        until(page, "!document.querySelector('#word').hidden")
        assert page.inner_text("#word") == "yes"


def test_what_the_page_is_told(tmp_path: pathlib.Path) -> None:
    graph = parse(
        """
        x = Placeholder(dtype=float, shape=[1,16,16,3])
        y = Relu(x, T=float)
        """
    )
    made = make_project("web", graph, tmp_path / "picture")
    told = json.loads((tmp_path / "picture" / "public" / "model.json").read_text())
    assert (told["kind"], told["app"]) == ("image", "image")
    assert told["input"]["height"] == 16
    golden = np.fromfile(tmp_path / "picture" / "public" / "golden" / "input_0.bin", np.float32)
    assert golden.size == 16 * 16 * 3
    assert made.kind == "web"
    assert "@" not in (tmp_path / "picture" / "README.md").read_text().replace("@litertjs", "")
    with Image.open(tmp_path / "picture" / "public" / "icon-192.png") as picture:
        assert picture.size == (192, 192)


def test_a_detector_that_needs_boxes(tmp_path: pathlib.Path) -> None:
    graph = parse(
        """
        input = Placeholder(dtype=float, shape=[1,8,8,3])
        shape = Const(int32 [1, 48, 4])
        concat = Reshape(input, shape, T=float, Tshape=int32)
        other = Const(int32 [1, 48, 4])
        zero = Const(int32 [0, 0, 0])
        size = Const(int32 [1, 48, 3])
        wide = Reshape(input, other, T=float, Tshape=int32)
        concat_1 = Slice(wide, zero, size, T=float, Index=int32)
        """
    )
    with pytest.raises(UsageError, match="priors or anchors"):
        make_project("web", graph, tmp_path / "site")
    assert not (tmp_path / "site").exists()
    (tmp_path / "anchors.txt").write_text(" ".join(["0.5 0.5 0.2 0.2"] * 48))
    make_project("web", graph, tmp_path / "site", boxes=tmp_path / "anchors.txt")
    told = json.loads((tmp_path / "site" / "public" / "model.json").read_text())
    assert told["decoder"] == "ssd"
    assert told["parts"] == ["boxes", "scores"]
    assert len(told["anchors"]) == 192
