"""A page of ``app web``, built by npm and opened in Chromium: it answers as the model does, offline too."""

import html
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from browsers import FAKE, browser, until, watched
from command_line import call
from moved_things import MOVED_THINGS, REDNESS, crossings
from pocketgraph.apps.label_image import Labeler
from pocketgraph.apps.live.application_choice import APPLICATIONS
from pocketgraph.apps.projects import make_project
from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.errors import UsageError
from pocketgraph.exporting.devices.device_fit import fit
from pocketgraph.graph.text_format import parse
from support import model_dir, needs_shared
from web_sites import built, served

BRIGHTNESS = """
    x = Placeholder(dtype=float, shape=[1,16,16,3])
    axes = Const(int32 [1, 2])
    mean = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(mean, T=float)
"""
WORDS = ["_silence_", "_unknown_", "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]


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
        assert not [text for text in wrong if "Content Security Policy" in text]  # npm start sends a strict one
        page.evaluate("navigator.serviceWorker.ready.then(() => { window.kept = true; })")
        until(page, "window.kept")
        server.kill()
        server.wait()
        page.reload()
        until(page, "document.querySelector('#classes li')")


def test_a_new_build_takes_the_place_of_one_that_the_browser_may_still_hold(tmp_path: pathlib.Path) -> None:
    """GitHub Pages and the like let a browser hold files for minutes; these were kept beside the new ones for good."""
    for number, label in enumerate(("before", "after")):
        make_project("web", parse(BRIGHTNESS), tmp_path / label, labels=[label] * 3)
        built(tmp_path / label)
        for file in (tmp_path / label / "dist").rglob("*"):  # HTTP tells whole seconds: within one, nothing is newer
            os.utime(file, (10**9 + 60 * number,) * 2)
    site = tmp_path / "site"

    class Held(SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            self.send_header("Cache-Control", "max-age=600")
            super().end_headers()

        def log_message(self, *what: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Held, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with browser(FAKE) as chromium:
            page = chromium.new_page()
            for label in ("before", "after"):
                shutil.rmtree(site, ignore_errors=True)
                shutil.copytree(tmp_path / label / "dist", site)
                if label == "before":
                    (site / "offline.js").unlink()  # the browser alone holds this one
                page.goto(f"http://127.0.0.1:{server.server_port}/")
                until(page, "document.querySelector('#classes li')")
            page.evaluate("navigator.serviceWorker.ready.then(() => {})")
            kept = "caches.match('model.json').then((found) => found.json()).then((it) => { window.kept = it.labels; })"
            until(page, f"{kept} && window.kept?.[0] === 'after'")  # the new build is fetched while the page runs
            assert page.evaluate("window.kept") == ["after"] * 3
    finally:
        server.shutdown()


def test_logits_below_0_keep_their_order_over_frames(tmp_path: pathlib.Path) -> None:
    """Averaged as shares they became 0, and the first class was the best of any picture."""
    graph = parse(BRIGHTNESS.replace("scores = Softmax(mean, T=float)", """
        less = Const(float [9, 2, 5])
        logits = Sub(mean, less, T=float)
    """))  # fmt: skip
    make_project("web", graph, tmp_path / "site", labels=["a", "b", "c"], app="classify")
    built(tmp_path / "site")
    with served(tmp_path / "site") as (url, _), browser(FAKE) as chromium:
        page = chromium.new_page()
        page.goto(url)
        until(page, "Number(document.body.dataset.answers) > 30")
        assert page.inner_text("#classes").split()[::2] == ["b", "c", "a"]
        assert "%" not in page.inner_text("#classes")


@pytest.mark.parametrize(("first", "repeats"), [("up", True), ("Background Noise", False)])
def test_a_page_knows_whether_words_repeat(first: str, repeats: bool, tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[1,16000])\nw = Const(float[16000,2] 0.01)\n"
                  "y = MatMul(x, w, T=float)")  # fmt: skip
    make_project("web", graph, tmp_path / "site", labels=[first, "down"], app="speech")
    assert json.loads((tmp_path / "site" / "public" / "model.json").read_text())["repeats"] is repeats


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


GPU = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--ignore-gpu-blocklist")
"""Flags of a browser with a graphics processor that is computed by the processor."""


def test_a_graphics_processor_gives_the_same_answers(tmp_path: pathlib.Path) -> None:
    make_project("web", parse(BRIGHTNESS), tmp_path / "site")
    built(tmp_path / "site")
    with served(tmp_path / "site") as (url, _), browser((*FAKE, *GPU)) as chromium:
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('#classes li')")
        if not page.evaluate("navigator.gpu?.requestAdapter().then(Boolean)"):
            pytest.skip("this Chromium has no WebGPU")
        is_on_it, difference, tolerance = page.evaluate("""async () => {
            const { Model } = await import("./engine.js"), about = await (await fetch("model.json")).json();
            const model = await Model.open(about, "webgpu");
            return [model.compiled.isFullyAccelerated, await model.difference(), about.tolerance];
        }""")
        assert is_on_it
        assert difference <= tolerance


def test_a_port_that_is_taken_is_said_in_a_line(tmp_path: pathlib.Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed (apt-get install nodejs)")
    make_project("web", parse(BRIGHTNESS), tmp_path / "site")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = [node, "serve.mjs", str(port)]
        done = subprocess.run(line, cwd=tmp_path / "site", capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr == f"port {port} is taken; another one: npm start -- {port + 1}\n"


STYLES = """
    input = Placeholder(dtype=float, shape=[1,?,?,3])
    style_num = Placeholder(dtype=float, shape=[3])
    one = Const(int32 [1, 1, 1, 3])
    tint = Reshape(style_num, one, T=float, Tshape=int32)
    mixed = Mul(input, tint, T=float)
    transformer = Relu(mixed, T=float)
"""
PIXELS = "Array.from(document.querySelector('#view').getContext('2d').getImageData({x}, 200, 1, 1).data).slice(0, 3)"


def test_styles_in_the_browser_change_size_and_show_what_was_before(tmp_path: pathlib.Path) -> None:
    site = tmp_path / "site"
    make_project("web", parse(STYLES), site, shapes={"input": (1, 64, 64, 3)})
    told = json.loads((site / "public" / "model.json").read_text())
    assert [entry["size"] for entry in told["sizes"]] == [32, 48, 64, 96, 128]
    built(site)
    Image.new("RGB", (640, 480), (200, 100, 50)).save(tmp_path / "photo.mjpeg", "JPEG", quality=95)
    with (
        served(site) as (url, _),
        browser((*FAKE, f"--use-file-for-fake-video-capture={tmp_path / 'photo.mjpeg'}")) as chromium,
    ):
        page = chromium.new_page(viewport={"width": 400, "height": 800})

        def pixel(x: int) -> np.ndarray:
            seen = int(page.evaluate("document.body.dataset.answers || 0"))
            until(page, f"Number(document.body.dataset.answers) > {seen + 3}")
            return np.array(page.evaluate(PIXELS.format(x=x)))

        page.goto(url)
        np.testing.assert_allclose(pixel(100), [200, 0, 0], atol=20)
        page.locator("[name=style1]").fill("1")
        for size in ("128", "32"):
            page.select_option("[name=size]", size)
            np.testing.assert_allclose(pixel(100), [0, 100, 0], atol=20)
        page.locator("#share").fill("0.5")
        np.testing.assert_allclose(pixel(100), [200, 100, 50], atol=20)
        np.testing.assert_allclose(pixel(500), [0, 100, 0], atol=20)
        assert page.inner_text("label:has([name=style0]) output") == "0"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_things_that_are_moved_by_a_known_path_keep_their_numbers_in_the_browser(tmp_path: pathlib.Path) -> None:
    make_project("web", parse(REDNESS), tmp_path / "site", app="detect")
    built(tmp_path / "site")
    with served(tmp_path / "site") as (url, _), browser(FAKE) as chromium:
        page = chromium.new_page()
        page.add_init_script(MOVED_THINGS)
        page.goto(url)
        assert crossings(page) == {"in sight": "2", "inwards": "1", "outwards": "1", "followed": "2"}


def test_times_of_the_page_are_a_device_for_fit(tmp_path: pathlib.Path) -> None:
    graph = parse(
        """
        x = Placeholder(dtype=float, shape=[1,32,32,3])
        w = Const(float[5,5,3,8] 0.02)
        c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        axes = Const(int32 [1, 2])
        m = Mean(c, axes, T=float, Tidx=int32, keep_dims=false)
        scores = Softmax(m, T=float)
        """
    )
    make_project("web", graph, tmp_path / "site")
    built(tmp_path / "site")
    with served(tmp_path / "site") as (url, _), browser(FAKE) as chromium:
        page = chromium.new_page(viewport={"width": 400, "height": 800})
        page.goto(url)
        until(page, "Number(document.body.dataset.answers) > 0")  # whose rows have moved the button to its place
        page.click("#benchmark")
        until(page, "!document.querySelector('#report').hidden")  # it is another page
        until(page, "Number(document.body.dataset.answers) > 20")
        with page.expect_download() as download:
            page.click("#report")
        download.value.save_as(tmp_path / "phone.json")
    told = json.loads((tmp_path / "phone.json").read_text())
    found = fit(graph, device_file=str(tmp_path / "phone.json"))
    (device,) = found.devices
    assert device.device.name == "phone"
    assert device.latency["float"].milliseconds == pytest.approx(told["no_stats"]["average"] / 1000)  # measured there
    assert told["machine"]["processor"] in device.device.title


def test_what_the_page_is_for_can_be_said(tmp_path: pathlib.Path) -> None:
    graph = parse(BRIGHTNESS)
    for app in ("embed", "benchmark", "classify"):
        make_project("web", graph, tmp_path / app, app=app)
        told = json.loads((tmp_path / app / "public" / "model.json").read_text())
        assert told["kind"] == app
    with pytest.raises(UsageError, match="classify"):
        make_project("web", graph, tmp_path / "x", app="classfy")
    with pytest.raises(UsageError, match="no detector"):
        make_project("web", graph, tmp_path / "x", app="detect")
    with pytest.raises(UsageError, match="does not choose"):
        make_project("pi", graph, tmp_path / "x", app="classify")


@needs_shared
def test_a_row_of_pixels_is_a_picture_and_the_best_class_alone_is_asked_for_its_scores(tmp_path: pathlib.Path) -> None:
    folder = model_dir("mnist_panjinquan")
    (graph,) = folder.glob("*.pb")
    make_project("web", graph, tmp_path / "digits")
    told = json.loads((tmp_path / "digits" / "public" / "model.json").read_text())
    assert told["kind"] == "classify"
    assert told["outputs"][0]["shape"] == [1, 10]
    assert (told["input"]["height"], told["input"]["width"], told["input"]["channels"]) == (28, 28, 1)


@needs_shared
def test_scores_whose_number_only_a_run_tells(tmp_path: pathlib.Path) -> None:
    make_project("web", model_dir("kws_crnn_s") / "CRNN_S.pb", tmp_path / "words", labels=WORDS)
    told = json.loads((tmp_path / "words" / "public" / "model.json").read_text())
    assert told["outputs"][0]["shape"] == [1, 12]
    unstated = """
        x = Placeholder(dtype=float, shape=[])
        axes = Const(int32 [1, 2])
        y = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
    """
    with pytest.raises(UsageError, match=r"input 'x' as \[\].*={\"x\": \(1, 224, 224, 3\)}"):
        make_project("web", parse(unstated), tmp_path / "unstated")


def test_no_script_stands_in_a_page(tmp_path: pathlib.Path) -> None:
    """A strict Content-Security-Policy runs none, nor an import map."""
    make_project(
        "web", parse("x = Placeholder(dtype=float, shape=[1,16,16,3])\ny = Relu(x, T=float)"), tmp_path / "out"
    )
    pages = [path.read_text() for path in (tmp_path / "out/src").glob("*.html")]
    assert len(pages) == 2
    for page in pages:
        assert re.findall(r"<script[^>]*>(?!</script>)|<style|\s(?:style|on\w+)=", page) == []
    named = [
        name for path in (tmp_path / "out/src").glob("*.js") for name in re.findall(r'from "(.*?)"', path.read_text())
    ]
    assert [name for name in named if not name.startswith("./")] == []


def test_a_name_of_any_letters_stands_in_the_page(tmp_path: pathlib.Path) -> None:
    name = 'My "best" <b>flowers</b> & \\more, ü'
    make_project("web", parse(BRIGHTNESS), tmp_path / "site", name=name)
    manifest = json.loads((tmp_path / "site" / "public" / "app.webmanifest").read_text("utf-8"))
    assert (manifest["name"], manifest["short_name"]) == (name, name)
    page = (tmp_path / "site" / "src" / "test.html").read_text("utf-8")
    assert "<b>" not in page
    assert html.unescape(re.findall("<h1>(.*)</h1>", page)[0]) == name


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


WORD_NUMBERS = """
    ids = Placeholder(dtype=int64, shape=[1,4])
    table = Const(float [[1.0, 0.0], [0.0, 2.0], [3.0, 1.0], [0.5, 4.0]])
    axis = Const(int32 0)
    vectors = GatherV2(table, ids, axis, Tparams=float, Tindices=int64, Taxis=int32, batch_dims=0)
    axes = Const(int32 [1])
    mean = Mean(vectors, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(mean, T=float)
    last = Const(int32 -1)
    best = ArgMax(scores, last, T=float, Tidx=int32, output_type=int64)
"""


def test_integers_of_64_bits_are_32_on_the_page(tmp_path: pathlib.Path) -> None:
    graph = parse(WORD_NUMBERS)
    ids = np.int64([[0, 3, 3, 1]])
    made = make_project("web", graph, tmp_path / "site", outputs=["scores", "best"], samples={"ids": ids})
    assert "ids, best: int32 on the page, as LiteRT.js has no int64" in made.notes
    folder = tmp_path / "site" / "public"
    assert np.fromfile(folder / "golden" / "input_0.bin", "<i4").tolist() == ids[0].tolist()
    with pocketgraph.Session(folder / "model.tflite") as session:
        (fed,) = session.inputs.values()
        assert fed.dtype.name == "int32"
        found = session.run(list(session.outputs), {next(iter(session.inputs)): ids.astype(np.int32)})
    best, scores = sorted(found, key=lambda array: array.ndim)
    mean = np.float32([2 / 4, 10 / 4])
    np.testing.assert_allclose(scores, [np.exp(mean) / np.exp(mean).sum()], rtol=1e-6)
    assert (best.dtype, best.tolist()) == (np.int32, [1])
    pocketgraph.export(graph, tmp_path / "model.tflite", outputs=["scores"])
    with pytest.raises(UsageError, match=r"feeds and reads no int64, as 'ids.*' is; give the graph"):
        make_project("web", tmp_path / "model.tflite", tmp_path / "other")


def test_yes_and_no_are_numbers_on_the_page(tmp_path: pathlib.Path) -> None:
    """LiteRT.js reads no bool: the page said so and showed nothing."""
    graph = parse("x = Placeholder(dtype=float, shape=[1,2])\nc = Const(float [1])\nover = Greater(x, c, T=float)")
    made = make_project("web", graph, tmp_path / "site", samples={"x": np.float32([[0.5, 2]])})
    assert "over: int32 on the page, as LiteRT.js has no bool" in made.notes
    folder = tmp_path / "site" / "public"
    assert np.fromfile(folder / "golden" / "output_0.bin", "<i4").tolist() == [0, 1]
    with pocketgraph.Session(folder / "model.tflite") as session:
        assert np.asarray(session.run("over", {"x": np.float32([[0.5, 2]])})).dtype == np.int32


def test_a_file_of_codes_below_zero_is_refused_with_what_helps(tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[1,4])\nw = Const(float [[1], [2], [3], [4]])\ny = MatMul(x, w)")
    samples = {"x": np.linspace(-1, 1, 4, dtype=np.float32)[None]}
    pocketgraph.export(graph, tmp_path / "model.tflite", mode="static", io="int8", samples=samples)
    with pytest.raises(
        UsageError, match=r"feeds and reads no int8, as 'x' is; make the file with io=float or io=uint8"
    ):
        make_project("web", tmp_path / "model.tflite", tmp_path / "site")


def test_numbers_of_words_in_the_browser(tmp_path: pathlib.Path) -> None:
    make_project("web", parse(WORD_NUMBERS), tmp_path / "site", outputs=["scores", "best"])
    built(tmp_path / "site")
    with served(tmp_path / "site") as (url, _), browser() as chromium:
        page = chromium.new_page()
        page.goto(f"{url.rstrip('/')}/test.html")
        until(page, "document.getElementById('result').textContent !== 'running…'")
        assert page.inner_text("#result").startswith("right: ")


def test_golden_answers_without_numbers_prove_nothing(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,4])
        less = Const(float 100)
        below = Sub(x, less, T=float)
        y = Sqrt(below, T=float)
    """)
    make_project("web", graph, tmp_path / "site")
    built(tmp_path / "site")
    with served(tmp_path / "site") as (url, _), browser() as chromium:
        page = chromium.new_page()
        page.goto(f"{url.rstrip('/')}/test.html")
        until(page, "document.getElementById('result').textContent !== 'running…'")
        assert page.inner_text("#result").startswith("NOT PROVEN: most of what y must give is NaN")
        page.goto(url)
        until(page, "Number(document.body.dataset.answers) > 3")


@pytest.mark.parametrize(("channels", "has_camera"), [(3, True), (0, False)])
def test_a_project_says_what_its_page_shows(channels: int, has_camera: bool, tmp_path: pathlib.Path) -> None:
    """A camera feeds every page that shows something of pictures, not only that of a classifier."""
    shape = f"[1,16,16,{channels}]" if channels else "[1,16]"
    graph = parse(f"""
        x = Placeholder(dtype=float, shape={shape})
        y = Tanh(x, T=float)
    """)
    made = make_project("web", graph, tmp_path / "page")
    assert made.has_camera == has_camera
    kind = json.loads((tmp_path / "page/public/model.json").read_text())["kind"]
    assert kind == ("image" if has_camera else "benchmark")
    assert made.shown == f"a page that shows {APPLICATIONS[kind]}"
