"""The page in Chromium with a made-up camera: real photos, recorded words, and everything that can go wrong."""

import json
import pathlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from browsers import browser, watched
from pocketgraph.apps.label_image import Labeler
from pocketgraph.apps.live.choice import application
from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.graph.text import parse
from support import model_dir, needs_shared

pytest.importorskip("uvicorn", reason="uvicorn is not installed (pocketgraph[live])")
pytest.importorskip("starlette", reason="Starlette is not installed (pocketgraph[live])")

from pocketgraph.apps.live.server import LiveServer

FAKE = ("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
BRIGHTNESS = """
    x = Placeholder(dtype=float, shape=[1,4,4,3])
    axes = Const(int32 [1, 2])
    mean = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(mean, T=float)
"""


def as_video(place: pathlib.Path, pictures: Sequence[Image.Image], frames: int = 25) -> pathlib.Path:
    """A Y4M video of 640 x 480 that shows each picture for so many frames."""
    with open(place, "wb") as file:
        file.write(b"YUV4MPEG2 W640 H480 F25:1 Ip A1:1 C420jpeg\n")
        for picture in pictures:
            light, blue, red = (np.asarray(c) for c in picture.resize((640, 480)).convert("YCbCr").split())
            frame = b"FRAME\n" + light.tobytes() + blue[::2, ::2].tobytes() + red[::2, ::2].tobytes()
            file.write(frame * frames)
    return place


@contextmanager
def served(app: Any, **how: Any) -> Iterator[tuple[str, LiveServer]]:
    server = LiveServer(app, "model", **how)
    url = server.bind()
    server.start()
    try:
        yield url, server
    finally:
        server.stop()


def until(page: Any, condition: str, seconds: float = 15) -> None:
    """Polls, as the page's policy lets nobody wait by a text that is evaluated."""
    end = time.monotonic() + seconds
    while not page.evaluate(f"Boolean({condition})"):
        assert time.monotonic() < end, f"{condition}: {page.inner_text('body')}"
        time.sleep(0.1)


@needs_shared
def test_a_photo_before_the_camera_gives_the_class_of_label_image(tmp_path: pathlib.Path) -> None:
    model = model_dir("mobilenet_v1_025_128")
    labels = read_labels(model / "labels.txt")
    photo = model_dir("data_tflite_support_images") / "burger.jpg"
    graph = pocketgraph.load(model / "frozen_graph.pb")
    (best,) = Labeler(graph, labels).label(photo, top=1)
    video = as_video(tmp_path / "photo.y4m", [Image.open(photo)])
    camera = f"--use-file-for-fake-video-capture={video}"
    with (
        served(application(graph, labels=labels), stills=str(tmp_path / "stills")) as (url, server),
        browser((*FAKE, camera)) as chromium,
    ):
        page = chromium.new_page(viewport={"width": 1200, "height": 800})
        wrong = watched(page)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        until(page, f"document.querySelector('#classes li span')?.textContent === {json.dumps(best.label)}")
        page.fill("#label", "lunch")
        page.click("#save")
        until(page, "document.querySelector('#saved').textContent.startsWith('saved')")
        assert len(list((tmp_path / "stills" / "lunch").iterdir())) == 1
        for width in (400, 1200):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.keyboard.press("d")
        until(page, "document.querySelector('#debug').textContent.includes('Conv2D')")
        until(page, "document.querySelector('#debug').textContent.includes('Frame: 640x480')")
        server.stop()
        until(page, "document.querySelector('#message').textContent.includes('stopped')")
        assert all(address.startswith((url, "blob:")) for address in asked)
        assert not [text for text in wrong if "WebSocket" not in text]


def test_a_camera_that_is_kept_back_says_what_to_do() -> None:
    with (
        served(application(parse(BRIGHTNESS), labels=["red", "green", "blue"])) as (url, _),
        browser(("--deny-permission-prompts", "--use-fake-device-for-media-stream")) as chromium,
    ):
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('#message button')")
        assert "Allow it" in page.inner_text("#message")


def test_without_a_camera_a_photo_can_be_chosen(tmp_path: pathlib.Path) -> None:
    Image.new("RGB", (64, 48), (0, 0, 255)).save(tmp_path / "blue.png")
    with (
        served(application(parse(BRIGHTNESS), labels=["red", "green", "blue"])) as (url, _),
        browser(("--use-fake-ui-for-media-stream",)) as chromium,
    ):
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('#message button')")
        assert "choose a photo" in page.inner_text("#message")
        page.set_input_files("#photo", str(tmp_path / "blue.png"))
        until(page, "document.querySelector('#classes li')")
        assert page.inner_text("#classes li:first-child span") == "blue"


@needs_shared
def test_styles_change_the_picture(tmp_path: pathlib.Path) -> None:
    photo = Image.open(model_dir("data_poets_images") / "stylize1.jpg").convert("RGB")
    video = as_video(tmp_path / "photo.y4m", [photo])
    graph = pocketgraph.load(model_dir("stylize_quantized") / "stylize_quantized.pb")
    with (
        served(application(graph, width=64, height=64)) as (url, _),
        browser((*FAKE, f"--use-file-for-fake-video-capture={video}")) as chromium,
    ):
        page = chromium.new_page()
        page.goto(url)
        pixels = "Array.from(document.querySelector('#view').getContext('2d').getImageData(100, 100, 8, 8).data)"
        until(page, "Number(document.body.dataset.answers) > 2")
        first = page.evaluate(pixels)
        page.locator("[name=style5]").fill("1")
        seen = int(page.evaluate("document.body.dataset.answers"))
        until(page, f"Number(document.body.dataset.answers) > {seen + 2}")
        assert page.evaluate("document.querySelector('[name=style0]').value") == "0"  # the sum stays 1
        assert np.abs(np.array(first) - np.array(page.evaluate(pixels))).mean() > 5


@needs_shared
def test_a_spoken_word_is_heard_and_no_other(tmp_path: pathlib.Path) -> None:
    recording = model_dir("data_speech_wavs") / "yes_1000ms.wav"
    labels = ["_silence_", "_unknown_", "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]
    graph = pocketgraph.load(model_dir("kws_ds_cnn_s") / "DS_CNN_S.pb")
    with (
        served(application(graph, labels=labels)) as (url, _),
        browser((*FAKE, f"--use-file-for-fake-audio-capture={recording}")) as chromium,
    ):
        page = chromium.new_page()
        page.add_init_script(
            "addEventListener('DOMContentLoaded', () => { window.words = [];"
            "new MutationObserver(() => { const w = document.querySelector('#word');"
            "if (!w.hidden) window.words.push(w.textContent); })"
            ".observe(document.querySelector('#answers'), {childList: true}); });"
        )
        page.goto(url)
        until(page, "window.words.length", 20)
        time.sleep(1)
        assert set(page.evaluate("window.words")) == {"yes"}


def test_the_benchmark_counts_runs() -> None:
    with served(application(parse(BRIGHTNESS), "benchmark")) as (url, _), browser() as chromium:
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('#numbers').textContent.includes('p99')")
        until(page, "Number(document.body.dataset.answers) > 20")
