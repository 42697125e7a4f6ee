"""The page's own modules, run by Node.js beside the Python that they repeat."""

import http.client
import json
import pathlib
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pocketgraph.apps.detections import Detection
from pocketgraph.apps.live import decoders, pose_decoding
from pocketgraph.apps.live.anchors import ssd_anchors
from pocketgraph.apps.live.pictures import as_pixels, slid
from pocketgraph.apps.live.tracking import Tracker
from pocketgraph.apps.live.word_recognition import WordRecognizer
from pocketgraph.datasets.picture_input import PictureInput
from pocketgraph.formats import tflite
from pocketgraph.graph import model_file_graph
from pocketgraph.graph.dtype import FLOAT, UINT8
from pocketgraph.kernels.audio.spectrograms import audio_spectrogram, mfcc
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from support import ROOT
from web_sites import served

SOURCES = ROOT / "src" / "pocketgraph" / "apps" / "projects" / "files" / "web" / "src"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="Node.js is not installed (apt-get install nodejs)")


def node(script: str, given: Any, tmp_path: pathlib.Path) -> Any:
    """What a module prints as JSON; ``given`` is there, and the page's modules at ``from "./x.js"``."""
    for source in SOURCES.glob("*.js"):
        shutil.copy(source, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "given.json").write_text(json.dumps(given))
    head = (
        "import { readFileSync } from 'node:fs';\n"
        "globalThis.ImageData = class { constructor(w, h) { this.width = w; this.height = h;"
        " this.data = new Uint8ClampedArray(4 * w * h); } };\n"
        "const given = JSON.parse(readFileSync('given.json')), f = (x) => Float32Array.from(x.flat(9));\n"
        "const say = (x) => console.log(JSON.stringify(x));\n"
    )
    (tmp_path / "script.js").write_text(script.replace("HEAD", head))
    assert NODE is not None
    done = subprocess.run([NODE, "script.js"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_pictures_are_resized_and_scaled_alike(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (37, 53, 3), np.uint8)
    rgba = np.concatenate([pixels, np.full((37, 53, 1), 255, np.uint8)], axis=2)
    wanted = PictureInput("x", FLOAT, 24, 31, 3, "NHWC").feed_pixels(pixels, 127.5, 127.5)
    script = """import { asInput } from "./pixels.js";
    HEAD
    say(Array.from(asInput({ data: Uint8ClampedArray.from(given.flat(9)), width: 53, height: 37 },
      { height: 24, width: 31, channels: 3, mean: [127.5, 127.5, 127.5], std: [127.5, 127.5, 127.5] })));"""
    found = np.array(node(script, rgba.tolist(), tmp_path), np.float32)
    np.testing.assert_array_equal(found, wanted.reshape(-1))
    planes = PictureInput("x", FLOAT, 24, 31, 3, "NCHW").feed_pixels(pixels, 127.5, 127.5)
    found = np.array(node(script.replace("mean:", "planes: true, mean:"), rgba.tolist(), tmp_path), np.float32)
    np.testing.assert_array_equal(found, planes.reshape(-1))


@pytest.mark.parametrize("what", ["camera", "microphone"])
@pytest.mark.parametrize("why", ["NotAllowedError", "NotFoundError", "NotReadableError", ""])
def test_what_is_not_there_is_replaced_by_a_photo_where_that_helps(what: str, why: str, tmp_path: pathlib.Path) -> None:
    shutil.copy(SOURCES.parents[3] / "live" / "page" / "capture.js", tmp_path)
    script = """HEAD
        import { Camera, Microphone } from "./capture.js";
        globalThis.document = { createElement: () => ({ getContext: () => null }) };
        const [what, why] = given, refused = async () => { throw Object.assign(new Error("no"), { name: why }); };
        const devices = why ? { mediaDevices: { getUserMedia: refused } } : {};
        Object.defineProperty(globalThis, "navigator", { value: devices, configurable: true });
        const source = what === "camera" ? new Camera({}, null) : new Microphone(null, null, 16000);
        await source.open().catch((error) => say(error.message));
    """
    said = node(script, [what, why], tmp_path)
    assert what in said
    assert ("choose a photo" in said) == (what == "camera")


def test_gray_is_what_label_image_takes_for_it(tmp_path: pathlib.Path) -> None:
    pixels = np.random.default_rng(8).integers(0, 256, (300, 300, 3), np.uint8)
    pixels[0, :3] = (127, 155, 6), (178, 119, 1), (33, 42, 9)
    wanted = np.asarray(Image.fromarray(pixels).convert("L"), np.float32)
    rgba = np.concatenate([pixels, np.full((300, 300, 1), 255, np.uint8)], axis=2)
    script = """import { asInput } from "./pixels.js";
    HEAD
    say(Array.from(asInput({ data: Uint8ClampedArray.from(given.flat(9)), width: 300, height: 300 },
      { height: 300, width: 300, channels: 1, mean: [0], std: [1] })));"""
    np.testing.assert_array_equal(np.array(node(script, rgba.tolist(), tmp_path), np.float32), wanted.reshape(-1))


@pytest.mark.parametrize(("scale", "zero"), [(1 / 127.5, 128), (0.0186584, 114), (1 / 255, 0)])
def test_numbers_become_the_codes_that_a_file_takes(tmp_path: pathlib.Path, scale: float, zero: int) -> None:
    values = np.random.default_rng(9).uniform(-1.5, 1.5, 500).astype(np.float32)
    values[:3] = np.array([0.5, 1.5, -2.5], np.float32) * np.float32(scale)
    x = Value("x", UINT8, (500,), None, Quantization((scale,), (zero,)))
    y = Value("y", UINT8, (500,), None, Quantization((scale,), (zero,)))
    graph = tflite.parse(model_bytes(Program([x], [y], [Operation("ABS", [x], [y])])))
    script = """import { coded, numbers } from "./codes.js";
    HEAD
    const codes = coded(f(given.values), given);
    say([Array.from(codes), Array.from(numbers(codes, given)), Array.from(coded(codes, given))]);"""
    told = {"values": values.tolist(), "dtype": "uint8", "scale": float(np.float32(scale)), "zero_point": zero}
    codes, meant, again = node(script, told, tmp_path)
    wanted = model_file_graph.coded(graph, "x:0", values)
    np.testing.assert_array_equal(codes, wanted)
    np.testing.assert_array_equal(again, wanted)
    np.testing.assert_allclose(meant, model_file_graph.numbers(graph, "x:0", wanted), rtol=1e-6)


def test_long_recordings_are_shown(tmp_path: pathlib.Path) -> None:
    """More numbers than a call takes arguments."""
    script = """import { APPLICATIONS } from "./applications.js";
    HEAD
    const step = { op: "AudioSpectrogram", window_size: 512, stride: 16, magnitude_squared: true };
    const app = new APPLICATIONS.speech({ labels: [], samples: 16000 * 2, rate: 16000, front: [step] });
    app.take(Float32Array.from({ length: 32000 }, (_, i) => Math.sin(i / 7)));
    say(app.answer([f([[0.25, 0.75]])]).values.spectrogram.flat().reduce((most, value) => Math.max(most, value), 0));"""
    assert node(script, None, tmp_path) == 255


def test_the_small_server_survives_what_it_is_asked_for(tmp_path: pathlib.Path) -> None:
    (tmp_path / "dist" / "golden").mkdir(parents=True)
    (tmp_path / "dist" / "index.html").write_text("the page")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copy(SOURCES.parent / "serve.mjs", tmp_path)
    with served(tmp_path) as (url, server):
        host, port = url.removeprefix("http://").rstrip("/").split(":")
        answers = []
        for path in ("/golden/", "/golden", "/%zz", "//", "/%2e%2e/package.json", "/none", "/?app=benchmark", "/"):
            asked = http.client.HTTPConnection(host, int(port), timeout=30)
            asked.request("GET", path)
            answers.append(asked.getresponse().status)
            asked.close()
        assert answers == [404, 404, 404, 200, 404, 404, 200, 200]
        assert server.poll() is None


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("low", "high", "mean", "std"),
    [
        (0, 1, (0,), (255,)),
        (0, 255, (0,), (255,)),
        (-1, 1, (127.5,), (127.5,)),
        (-1.8, 2.2, (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)),
    ],
)
def test_outputs_become_the_same_pictures(
    tmp_path: pathlib.Path, low: float, high: float, mean: tuple[float, ...], std: tuple[float, ...], channels: int
) -> None:
    values = np.random.default_rng(2).uniform(low, high, (1, channels, 9, 7)).astype(np.float32)
    script = """import { asPicture } from "./pixels.js";
    HEAD
    say(Array.from(asPicture(f(given.values), given.shape, { mean: given.mean, std: given.std }).data));"""
    given = {"values": values.tolist(), "shape": values.shape, "mean": mean, "std": std}
    found = node(script, given, tmp_path)
    pixels = np.array(found, np.uint8).reshape(9, 7, 4)[..., :3]
    assert np.abs(pixels.astype(int) - as_pixels(values, mean, std)).max() <= 1


def test_dark_pixels_of_bytes_stay_as_they_are(tmp_path: pathlib.Path) -> None:
    values = np.random.default_rng(2).integers(0, 3, (9, 7, 3), np.uint8)
    script = """import { asPicture } from "./pixels.js";
    HEAD
    say(Array.from(asPicture(Uint8Array.from(given.flat(9)), [9, 7, 3]).data));"""
    pixels = np.array(node(script, values.tolist(), tmp_path), np.uint8).reshape(9, 7, 4)[..., :3]
    assert np.array_equal(pixels, as_pixels(values, 0, 255))
    assert np.array_equal(pixels, values)


def outputs() -> dict[str, tuple[dict[str, np.ndarray], decoders.Reading]]:
    rng = np.random.default_rng(3)
    corners = np.sort(rng.uniform(-0.1, 1.1, (40, 2, 2)), axis=1).reshape(40, 4)
    scores = rng.uniform(0, 1, 40)
    labels = ["???", "cat", "dog", "cow"]
    api = {
        "boxes": corners,
        "scores": scores,
        "classes": rng.integers(0, 4, 40).astype(float),
        "count": np.array([30.0]),
    }
    priors = rng.uniform(0.05, 0.9, (40, 4, 2))
    anchors = ssd_anchors(1917, 300)
    assert anchors is not None
    ssd = {"boxes": rng.normal(0, 1, (1, 1917, 4)), "scores": rng.normal(-2, 1.5, (1, 1917, 4))}
    grid = rng.normal(0, 1, (1, 7, 7, 5 * 8))
    heat = {"heat": rng.normal(-1, 1.5, (1, 12, 10, 3)), "sizes": rng.uniform(1, 4, (1, 12, 10, 2))}
    heat["offsets"] = rng.uniform(0, 1, (1, 12, 10, 2))
    faces = {"boxes": corners * 200, "scores": scores, "points": rng.uniform(0, 200, (40, 10))}
    reading = decoders.Reading
    return {
        "detection_api": (api, reading(labels, 200, 300, 0.3)),
        "postprocessed": (api, reading(labels, 200, 300, 0.3)),
        "multibox": (
            {"boxes": rng.normal(0, 1, (40, 4)), "scores": rng.normal(0, 2, 40)},
            reading((), 224, 224, 0.3, priors),
        ),
        "ssd": (ssd, reading(labels, 300, 300, 0.6, anchors)),
        "yolo": ({"grid": grid}, reading(["cat", "dog", "cow"], 224, 224, 0.25)),
        "heat_maps": (heat, reading(["cat", "dog", "cow"], 224, 224, 0.5)),
        "selected": ({**api, "boxes": corners * 200}, reading(labels[1:], 200, 300, 0.3)),
        "mtcnn": (faces, reading((), 200, 300, 0.3)),
    }


@pytest.mark.parametrize("family", decoders.FAMILIES, ids=lambda family: family.name)
def test_detections_are_the_same(family: decoders.Family, tmp_path: pathlib.Path) -> None:
    found, how = outputs()[family.name]
    wanted = family.decode({part: array.astype(np.float32) for part, array in found.items()}, how)
    assert len(wanted) > 2
    given = {
        "name": family.name,
        "found": {part: array.reshape(-1).tolist() for part, array in found.items()},
        "shapes": {part: list(array.shape) for part, array in found.items()},
        "how": {
            "labels": list(how.labels), "least": how.least, "overlap": how.overlap, "height": how.height,
            "width": how.width, "anchors": None if how.anchors is None else how.anchors.reshape(-1).tolist(),
        },
    }  # fmt: skip
    script = """import { DECODERS } from "./decoders.js";
    HEAD
    for (const part of Object.keys(given.found)) given.found[part] = f(given.found[part]);
    say(DECODERS[given.name](given.found, given.how, given.shapes));"""
    made = node(script, given, tmp_path)
    assert [entry["label"] for entry in made] == [entry.label for entry in wanted]
    for entry, other in zip(made, wanted, strict=True):
        np.testing.assert_allclose(entry["box"], other.box, atol=1e-5)
        assert entry["score"] == pytest.approx(other.score, abs=1e-5)
        np.testing.assert_allclose(entry.get("points", []), list(other.points), atol=1e-5)


def test_tracks_are_the_same(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    frames = []
    for number in range(40):
        here = []
        for thing in range(4):
            x, y = 0.1 + 0.02 * number + 0.01 * thing, 0.15 + 0.2 * thing
            if rng.uniform() < 0.8:
                jitter = rng.normal(0, 0.004, 2)
                box = (y - 0.06 + jitter[0], x - 0.05 + jitter[1], y + 0.06 + jitter[0], x + 0.05 + jitter[1])
                here.append({"box": box, "score": 0.9, "label": "cat" if thing % 2 else "dog"})
        frames.append(here)
    tracker = Tracker()
    tracker._flow = False  # the page has no optical flow
    wanted = []
    for number, here in enumerate(frames):
        found = tracker.match([Detection(e["box"], e["score"], e["label"]) for e in here], number / 10)
        wanted.append([entry.identity for entry in found])
    script = """import { Tracker } from "./tracking.js";
    HEAD
    const tracker = new Tracker();
    const ids = given.map((frame, i) => tracker.match(frame, i / 10).map((entry) => entry.id));
    say({ ids, counts: tracker.counts() });"""
    made = node(script, frames, tmp_path)
    assert made["ids"] == wanted
    assert made["counts"] == tracker.counts()


def test_skeletons_are_the_same(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(5)
    maps = rng.normal(0, 0.05, (20, 24, pose_decoding.MAPS))
    places = {part: (2 + part // 2, 3 + part) for part in range(18)}
    for part, (y, x) in places.items():
        maps[y, x, part] = 0.9
    for one, two, channel in pose_decoding.LIMBS:
        along = np.subtract(places[two], places[one]) / np.hypot(*np.subtract(places[two], places[one]))
        for share in np.linspace(0, 1, 40):
            y, x = np.rint(np.array(places[one]) * (1 - share) + np.array(places[two]) * share).astype(int)
            maps[y, x, 19 + channel : 21 + channel] = along[::-1]
    bodies, bones = pose_decoding.people(maps.astype(np.float32), 0.3)
    assert len(bodies) == 1
    script = """import { people } from "./skeletons.js";
    HEAD
    say(people(f(given), [1, 20, 24, 57], 0.3));"""
    made = node(script, maps.tolist(), tmp_path)
    np.testing.assert_allclose(made["lines"], bones, atol=1e-6)
    np.testing.assert_allclose(made["detections"][0]["box"], bodies[0].box, atol=1e-6)


def test_the_sound_front_has_our_kernels_numbers(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(6)
    samples = (rng.normal(0, 0.2, 8000) * np.sin(np.arange(8000) / 7)).astype(np.float32)
    shown = audio_spectrogram(samples[:, None], window_size=480, stride=160, magnitude_squared=True)
    wanted = mfcc(shown, np.int32(16000), dct_coefficient_count=40)
    steps = [
        {"op": "AudioSpectrogram", "window_size": 480, "stride": 160, "magnitude_squared": True},
        {"op": "Mfcc", "upper_frequency_limit": 4000.0, "lower_frequency_limit": 20.0,
         "filterbank_channel_count": 40, "dct_coefficient_count": 40},
    ]  # fmt: skip
    script = """import { front } from "./sound.js";
    HEAD
    const samples = f(given.samples), power = front(samples, 16000, given.steps.slice(0, 1));
    const made = front(samples, 16000, given.steps);
    say({ power: Array.from(power.values), values: Array.from(made.values), frames: made.frames, bins: made.bins });"""
    made = node(script, {"samples": samples.tolist(), "steps": steps}, tmp_path)
    assert (made["frames"], made["bins"]) == wanted.shape[1:]
    np.testing.assert_allclose(made["power"], shown.reshape(-1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made["values"], wanted.reshape(-1), atol=1e-4)


def test_logits_of_words_are_judged_as_shares(tmp_path: pathlib.Path) -> None:
    script = """import { APPLICATIONS } from "./applications.js";
    HEAD
    const app = new APPLICATIONS.speech({ labels: ["a", "b", "c"], samples: 1600, rate: 1600, front: [] });
    app.take(new Float32Array(1600));
    say(app.answer([f([[-4, -2, -3]])]).classes);"""
    wanted = np.exp([-2, -3, -4]) / np.exp([-2, -3, -4]).sum()
    said = node(script, None, tmp_path)
    assert [entry["label"] for entry in said] == ["b", "c", "a"]
    np.testing.assert_allclose([entry["score"] for entry in said], wanted, rtol=1e-6)


@pytest.mark.parametrize("others", [["_silence_", "_unknown_"], ["up", "down"]])
def test_words_are_told_alike(others: list[str], tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(7)
    labels, repeats = [*others, "yes", "no"], "up" in others
    rows = [rng.dirichlet([1, 1, 1 + 30 * (number // 25 % 2), 1 + 30 * (number // 40 % 2)]) for number in range(200)]
    recognizer = WordRecognizer(labels, 500, 0.5, 700, 3, repeats=repeats)
    wanted = []
    for number, row in enumerate(rows):
        heard = recognizer(row, 30 * number)
        if heard.is_new and not heard.label.startswith("_"):
            wanted.append([30 * number, heard.label])
    assert len(wanted) > 2
    script = """import { Words } from "./sound.js";
    HEAD
    const settings = { window_ms: 500, threshold: 0.5, suppression_ms: 700, minimum_count: 3 };
    const words = new Words(given.labels, settings, given.repeats);
    const heard = given.rows.map((row, i) => [30 * i, words.hear(row, 30 * i)]);
    say(heard.filter(([, word]) => word).map(([time, word]) => [time, word.label]));"""
    given = {"labels": labels, "rows": [row.tolist() for row in rows], "repeats": repeats}
    assert node(script, given, tmp_path) == wanted


def test_one_share_of_two_labels_is_shown_as_both(tmp_path: pathlib.Path) -> None:
    script = """import { APPLICATIONS } from "./applications.js";
    HEAD
    const app = new APPLICATIONS.classify({ labels: ["cat", "dog"] });
    say(given.map((share) => app.answer([Float32Array.of(share)]).classes));"""
    first, second = node(script, [0.75, 0.75], tmp_path)
    assert first == second == [{"label": "dog", "score": 0.75}, {"label": "cat", "score": 0.25}]


def test_sliders_move_alike(tmp_path: pathlib.Path) -> None:
    moves = [(1, 0.4), (1, 1.0), (1, 0.3), (2, 0.6), (0, 0.0), (3, 0.5), (3, 1.0), (3, 0.0), (2, 0.985)]
    weights, last = np.array([1.0, 0, 0, 0]), 1
    wanted = []
    for moved, value in moves:
        weights, last = slid(weights, moved, value, last)
        wanted.append(weights.tolist())
    script = """import { APPLICATIONS } from "./applications.js";
    HEAD
    const app = new APPLICATIONS.stylize({ labels: ["a", "b", "c", "d"], input: {} });
    say(given.map(([moved, value]) => {
      app.change(`style${moved}`, value);
      return app.rows.map((row) => row.value);
    }));"""
    np.testing.assert_allclose(node(script, moves, tmp_path), wanted, atol=1e-9)
