"""The page in Chromium with a made-up camera: real photos, recorded words, and everything that can go wrong."""

import json
import pathlib
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from browsers import FAKE, browser, until, watched
from colours import COLOURS
from moved_things import MOVED_THINGS, REDNESS, crossings
from pocketgraph.apps.label_image import Labeler
from pocketgraph.apps.live.answers import Answer, Frame
from pocketgraph.apps.live.application_choice import application
from pocketgraph.apps.live.classification import Classification
from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.exporting.devices.device_fit import fit
from pocketgraph.graph.text_format import parse
from support import model_dir, needs_shared

pytest.importorskip("uvicorn", reason="uvicorn is not installed (pocketgraph[live])")
pytest.importorskip("starlette", reason="Starlette is not installed (pocketgraph[live])")

from pocketgraph.apps.live.live_server import LiveServer, Place


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


def answers_go_on(page: Any) -> None:
    seen = int(page.evaluate("document.body.dataset.answers || 0"))
    until(page, f"Number(document.body.dataset.answers) > {seen + 3}")


def answers_come_to_rest(page: Any) -> None:
    """One that was under way may still come."""
    seen = None
    for _ in range(60):
        before, seen = seen, page.evaluate("document.body.dataset.answers")
        if seen == before:
            return
        time.sleep(1)
    pytest.fail("there are ever more answers")


def test_a_camera_that_is_kept_back_says_what_to_do_and_recovers() -> None:
    with (
        served(application(parse(COLOURS), labels=["red", "green", "blue"])) as (url, _),
        browser(("--deny-permission-prompts", "--use-fake-device-for-media-stream")) as chromium,
    ):
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('#message button')")
        assert "Allow it" in page.inner_text("#message")
        page.context.grant_permissions(["camera"], origin=url.rstrip("/"))
        page.click("#message button")
        answers_go_on(page)
        assert page.is_hidden("#message")


def test_a_camera_that_is_pulled_says_what_to_do_and_recovers() -> None:
    with served(application(parse(COLOURS))) as (url, _), browser(FAKE) as chromium:
        page = chromium.new_page()
        page.add_init_script("""
            const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
            navigator.mediaDevices.getUserMedia = (wish) => (window.pulled
              ? Promise.reject(new DOMException("", "NotFoundError")) : open(wish));
        """)
        page.goto(url)
        answers_go_on(page)
        page.evaluate("""() => {
            window.pulled = true;
            const [track] = document.querySelector("#video").srcObject.getVideoTracks();
            track.stop();
            track.dispatchEvent(new Event("ended"));
        }""")
        until(page, "document.querySelector('#message').textContent.includes('unplugged')")
        page.click("#message button")
        until(page, "document.querySelector('#message').textContent.includes('Plug one in')")
        answers_come_to_rest(page)
        page.evaluate("window.pulled = false")
        page.click("#message button")
        answers_go_on(page)
        assert page.is_hidden("#message")


def test_a_command_that_is_stopped_says_so_and_its_page_comes_back() -> None:
    app = application(parse(COLOURS))
    with browser(FAKE) as chromium:
        page = chromium.new_page()
        with served(app) as (url, server):
            page.goto(url)
            answers_go_on(page)
            port = server.port
        until(page, "document.querySelector('#message').textContent.includes('stopped')")
        page.wait_for_timeout(2600)  # as long as it takes until a model is told to be slow
        assert page.inner_text("#state") == "not connected"
        with served(app, place=Place(port=port)):
            page.click("#message button")
            until(page, "document.body.dataset.kind")
            answers_go_on(page)


def test_a_slow_model_says_that_it_is_at_work() -> None:
    is_told = threading.Event()

    class Slow(Classification):
        def __call__(self, given: Frame) -> Answer:
            assert is_told.wait(120)
            return super().__call__(given)

    with served(Slow(Labeler(parse(COLOURS)))) as (url, _), browser(FAKE) as chromium:
        page = chromium.new_page()
        page.goto(url)
        until(page, "/at work on this one for [0-9]+ seconds/.test(document.querySelector('#state').textContent)")
        is_told.set()
        until(page, "document.querySelector('#state').textContent.includes('frames a second')")
        answers_go_on(page)


def test_a_hidden_tab_rests() -> None:
    with served(application(parse(COLOURS))) as (url, _), browser(FAKE) as chromium:
        page = chromium.new_page()
        page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => Boolean(window.away) })")
        page.goto(url)
        answers_go_on(page)
        page.evaluate("window.away = true")
        answers_come_to_rest(page)
        page.evaluate("window.away = false")
        answers_go_on(page)


def test_a_mistake_in_the_program_reaches_the_page_which_goes_on() -> None:
    is_told = threading.Event()

    class Mistaken(Classification):
        def __call__(self, given: Frame) -> Answer:
            if not hasattr(self, "begun"):
                self.begun = True
                raise ZeroDivisionError("of all things")
            assert is_told.wait(120)
            return super().__call__(given)

    told: list[Exception] = []
    with (
        served(Mistaken(Labeler(parse(COLOURS))), tell=told.append) as (url, _),
        browser(FAKE) as chromium,
    ):
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('#message').textContent.includes('ZeroDivisionError: of all things')")
        is_told.set()
        answers_go_on(page)
        assert page.is_hidden("#message")
    assert len(told) == 1


def test_things_that_are_moved_by_a_known_path_keep_their_numbers() -> None:
    with served(application(parse(REDNESS), "detect")) as (url, _), browser(FAKE) as chromium:
        page = chromium.new_page()
        page.add_init_script(MOVED_THINGS)
        page.goto(url)
        assert crossings(page) == {"in sight": "2", "inwards": "1", "outwards": "1", "followed": "2"}


def test_logits_are_shown_as_numbers() -> None:
    """That of the best class may be between 0 and 1: it is no share of 100 % for that."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        w = Const(float[192,3] 0)
        to = Const(int32 [1, 192])
        flat = Reshape(x, to, T=float, Tshape=int32)
        product = MatMul(flat, w, T=float)
        add = Const(float [-0.5, 0.4, -0.9])
        logits = BiasAdd(product, add, T=float)
    """)
    with (
        served(application(graph, labels=["red", "green", "blue"], kind="classify")) as (url, _),
        browser(FAKE) as chromium,
    ):
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('#classes li')")
        answers_go_on(page)
        assert page.inner_text("#classes").split() == ["green", "0.40", "red", "-0.50", "blue", "-0.90"]


def test_each_setting_has_its_name_for_a_screen_reader() -> None:
    with served(application(parse(COLOURS), labels=["red", "green", "blue"])) as (url, _), browser(FAKE) as chromium:
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('#settings label')")
        for role, name in (
            ("slider", "Show scores over"),
            ("slider", "How many classes"),
            ("combobox", "The picture is"),
        ):
            assert page.get_by_role(role, name=name).count() == 1
        page.get_by_text("How many classes").click(position={"x": 2, "y": 2})
        assert page.evaluate("document.activeElement.name") == "top"
        spoken = page.locator("[role=status], [role=alert], [aria-live]")  # not what changes with each frame
        assert spoken.evaluate_all("(found) => found.map(({ id }) => id)") == ["message", "saved"]


def test_without_a_camera_a_photo_can_be_chosen(tmp_path: pathlib.Path) -> None:
    Image.new("RGB", (64, 48), (0, 0, 255)).save(tmp_path / "blue.png")
    with (
        served(application(parse(COLOURS), labels=["red", "green", "blue"])) as (url, _),
        browser(("--use-fake-ui-for-media-stream",)) as chromium,
    ):
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('#message button')")
        assert "choose a photo" in page.inner_text("#message")
        page.set_input_files("#photo", str(tmp_path / "blue.png"))
        until(page, "document.querySelector('#classes li')")
        assert page.inner_text("#classes li:first-child span") == "blue"


DROPPED = """async ([name, type, colour]) => {
    const canvas = new OffscreenCanvas(64, 48), pen = canvas.getContext("2d");
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 64, 48);
    const content = colour ? await canvas.convertToBlob() : "words", data = new DataTransfer();
    data.items.add(new File([content], name, { type }));
    const told = (kind) => new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: data });
    return ["dragover", "drop"].map((kind) => document.body.dispatchEvent(told(kind)));
}"""


def test_a_file_that_is_dropped_is_the_photo_and_a_wrong_one_is_told_of_for_as_long_as_it_takes_to_read() -> None:
    with served(application(parse(COLOURS), labels=["red", "green", "blue"])) as (url, _), browser(FAKE) as chromium:
        page = chromium.new_page()
        page.goto(url)
        answers_go_on(page)
        assert page.evaluate(DROPPED, ["notes.txt", "text/plain", ""]) == [False, False]  # the browser does not open it
        until(page, "document.querySelector('#message').textContent.includes('notes.txt is no picture')")
        answers_go_on(page)
        assert page.is_visible("#message")
        page.click("#message button")
        assert page.is_hidden("#message")
        page.evaluate(DROPPED, ["blue.png", "image/png", "#00f"])
        until(page, "document.querySelector('#classes li:first-child span').textContent === 'blue'")
        page.evaluate(DROPPED, ["notes.txt", "text/plain", ""])
        until(page, "document.querySelector('#message').textContent.includes('notes.txt is no picture')")
        assert page.inner_text("#message button") == "Back to the camera"


def test_the_keyboard_reaches_the_photo_and_presses_the_button_that_it_is_on(tmp_path: pathlib.Path) -> None:
    Image.new("RGB", (64, 48), (0, 0, 255)).save(tmp_path / "blue.png")
    with served(application(parse(COLOURS), labels=["red", "green", "blue"])) as (url, _), browser(FAKE) as chromium:
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('#classes li')")
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "photo":
                break
        assert page.evaluate("document.activeElement.id") == "photo"
        choosers: list[Any] = []
        page.on("filechooser", lambda chooser: choosers.append(chooser))
        for _ in range(20):  # a busy browser may forget that somebody pressed a key before it would open the files
            if not choosers:
                page.keyboard.press("Space")
                page.wait_for_timeout(500)
        choosers[0].set_files(str(tmp_path / "blue.png"))
        until(page, "document.querySelector('#classes li:first-child span').textContent === 'blue'")
        page.focus("#details")
        page.keyboard.press("Space")
        assert page.is_visible("#debug")
        assert page.inner_text("#pause") == "Pause"
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("Space")
        assert page.inner_text("#pause") == "Continue"


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
        until(page, "window.words.length")
        time.sleep(1)
        assert set(page.evaluate("window.words")) == {"yes"}


def test_the_benchmark_counts_runs_and_its_times_are_a_device_for_fit(tmp_path: pathlib.Path) -> None:
    graph = parse(COLOURS)
    with served(application(graph, "benchmark")) as (url, _), browser() as chromium:
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('#numbers').textContent.includes('99 in 100')")
        until(page, "Number(document.body.dataset.answers) > 20")
        with page.expect_download() as download:
            page.click("#report")
        download.value.save_as(tmp_path / "here.json")
    told = json.loads((tmp_path / "here.json").read_text())
    (device,) = fit(graph, device_file=str(tmp_path / "here.json")).devices
    assert told["no_stats"]["count"] > 20
    assert device.latency["float"].milliseconds == pytest.approx(told["no_stats"]["average"] / 1000)
