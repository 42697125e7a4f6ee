"""Projects: complete, without a place that was forgotten, and run or parsed as far as that goes on any machine."""

from __future__ import annotations

import errno
import json
import pathlib
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
import wave
import xml.etree.ElementTree as ElementTree
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from command_line import call
from pocketgraph.apps.label_image import label_image
from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.apps.projects import make_project
from pocketgraph.apps.projects.app_names import app_name, in_android, in_kotlin, in_swift
from pocketgraph.apps.projects.kinds import KINDS
from pocketgraph.errors import MissingExtraError, PocketgraphError, UsageError
from pocketgraph.exporting import export, targets
from pocketgraph.exporting.tflite.metadata import archive
from pocketgraph.formats import files, load, save
from pocketgraph.formats.tflite import facts
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import DType, Graph, const
from pocketgraph.graph.dtype import INT8, INT32, UINT8
from pocketgraph.graph.graph import DEFAULT_SIGNATURE, Signature
from pocketgraph.graph.model_file_graph import coded
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes
from pocketgraph.runtime import Session
from quantize_nets import float_program
from support import model_dir, model_info, needs_shared

CLASSIFIER = """
    pixels = Placeholder(dtype=float, shape=[?, 8, 8, 3])
    w = Const(float [[[[0.5, -1.0, 0.1], [0.25, 2.0, 0.2], [1.0, 0.5, -0.7]]]])
    conv = Conv2D(pixels, w, T=float, strides=[1, 2, 2, 1], padding="SAME", data_format="NHWC")
    axes = Const(int32 [1, 2])
    pooled = Mean(conv, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(pooled, T=float)
"""
GRAY_CLASSIFIER = """
    pixels = Placeholder(dtype=float, shape=[?, 8, 8, 1])
    w = Const(float [[[[0.5, -3.0, 2.0]]]])
    conv = Conv2D(pixels, w, T=float, strides=[1, 2, 2, 1], padding="SAME", data_format="NHWC")
    axes = Const(int32 [1, 2])
    pooled = Mean(conv, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(pooled, T=float)
"""
PLAIN = """
    first = Placeholder(dtype=float, shape=[?, 3])
    second = Placeholder(dtype=float, shape=[?, 3])
    sum = Add(first, second, T=float)
    product = Mul(first, second, T=float)
"""
TITLE = 'Joe\'s "best" <Flowers> & $more \\ 100 % @title@ ü'
LABELS = ['a "rose"', "dandelion \\", "$tulip, ☘"]


def graph(which: str) -> Graph:
    return parse(CLASSIFIER if which == "classifier" else PLAIN)


def engines() -> list[Any]:
    made = []
    for kind in KINDS.values():
        for engine in kind.engines:
            missing = engine == "coreml" and find_spec("coremltools") is None
            marks = [pytest.mark.skip(reason="the extra 'coreml' is not installed")] if missing else []
            made.append(pytest.param(kind.name, engine, marks=marks, id=f"{kind.name}-{engine}"))
    return made


def project(which: str, kind: str, engine: str, out: pathlib.Path) -> pathlib.Path:
    how: dict[str, Any] = {"labels": LABELS, "input_mean": 127.5, "input_std": 64.0} if which == "classifier" else {}
    outputs = None if which == "classifier" else ["sum", "product"]
    made = make_project(kind, graph(which), out, name=TITLE, engine=engine, outputs=outputs, **how)
    assert made.has_camera == (which == "classifier")
    assert made.bytes == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return out


def text_files(out: pathlib.Path) -> dict[str, str]:
    binary = {".bin", ".npz", ".tflite", ".mlmodel", ".png"}
    return {
        path.relative_to(out).as_posix(): path.read_text("utf-8")
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.suffix not in binary
    }


@pytest.mark.parametrize("which", ["classifier", "plain"])
@pytest.mark.parametrize(("kind", "engine"), engines())
def test_no_place_is_left_empty(which: str, kind: str, engine: str, tmp_path: pathlib.Path) -> None:
    texts = text_files(project(which, kind, engine, tmp_path / "out"))
    assert {"README.md"} <= texts.keys()
    own = {TITLE, in_android(TITLE)}
    for name, text in texts.items():
        for part in own:
            text = text.replace(part, "")
        assert not re.search(r"@[a-z_]+@", text.replace("@title@", "")), name
        assert "@" not in name
        assert "TODO" not in text
    readme = texts["README.md"]
    assert readme.startswith(f"# {TITLE}\n")
    commands = readme.split("\n\n")[2].splitlines()
    assert len(commands) == 2
    assert all(line.startswith("    ") for line in commands)
    assert "What was tried, and what was not" in readme
    named = re.findall(r"`((?:App|app|model|Tests)/[\w./]+)`", readme)
    there = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*")}
    assert [name for name in named if name not in there and not (name == "App/labels.txt" and which == "plain")
            and not (name.endswith("labels.txt") and which == "plain")] == []  # fmt: skip


def parsed_files(out: pathlib.Path, language: str, *suffixes: str) -> int:
    """Parses source files and fails on the first error."""
    tree_sitter = pytest.importorskip("tree_sitter", reason="tree-sitter is not installed")
    module = pytest.importorskip(f"tree_sitter_{language}", reason=f"tree-sitter-{language} is not installed")
    parser = tree_sitter.Parser(tree_sitter.Language(module.language()))
    count = 0
    for path in sorted(out.rglob("*")):
        if path.suffix in suffixes:
            waiting = [parser.parse(path.read_bytes()).root_node]
            while waiting:
                node = waiting.pop()
                assert node.type != "ERROR", (path, node.start_point, node.text)
                assert not node.is_missing, (path, node.start_point)
                waiting.extend(node.children)
            count += 1
    return count


@pytest.mark.parametrize("which", ["classifier", "plain"])
def test_android_files_parse(which: str, tmp_path: pathlib.Path) -> None:
    out = project(which, "android", "tflite", tmp_path / "out")
    assert parsed_files(out, "kotlin", ".kt", ".kts") == (7 if which == "classifier" else 6)
    assert parsed_files(out, "java", ".java") == 5
    manifest = ElementTree.parse(out / "app/src/main/AndroidManifest.xml").getroot()
    names = "{http://schemas.android.com/apk/res/android}name"
    activities = [item.get(names, "") for item in manifest.iter("activity")]
    folder = next(out.glob("app/src/main/java/com/example/*"))
    assert [(folder / f"{name[1:]}.kt").exists() for name in activities] == [True] * len(activities)
    permissions = [item.get(names) for item in manifest.iter("uses-permission")]
    assert permissions == (["android.permission.CAMERA"] if which == "classifier" else [])
    wanted = [item.get(names) for item in manifest.iter("uses-feature") if item.get(names[:-4] + "required") != "false"]
    assert wanted == []  # or the store hides the app from devices without such a camera
    strings = ElementTree.parse(out / "app/src/main/res/values/strings.xml").getroot()
    name = next(item for item in strings if item.get("name") == "app_name")
    assert name.get("formatted") == "false"  # else Android's build takes no name with two per cent signs
    shown = name.text or ""
    assert re.sub(r"\\(.)", r"\1", shown) == TITLE
    ElementTree.parse(out / "app/src/main/res/drawable/icon.xml")
    used = set(re.findall(r"R\.string\.(\w+)", "".join(text_files(out).values())))
    assert used <= {item.get("name") for item in strings}


def test_android_versions_are_those_that_the_store_takes(tmp_path: pathlib.Path) -> None:
    """Google Play: API 36 from 2026-08-31, libraries for 16 kB pages from 2025-11-01 (LiteRT 1.4.0, CameraX 1.4.2).
    The Android Gradle plugin has API 36 from 8.9.1, which needs Gradle 8.11.1."""
    texts = text_files(project("classifier", "android", "tflite", tmp_path / "out"))

    def version(file: str, before: str) -> tuple[int, ...]:
        found = {tuple(map(int, part.split("."))) for part in re.findall(before + r"([\d.]*\d)", texts[file])}
        assert len(found) == 1, found
        return found.pop()

    app = "app/build.gradle.kts"
    assert version(app, "targetSdk = ") >= (36,)
    assert version(app, "compileSdk = ") >= version(app, "targetSdk = ")
    assert version(app, "litert:litert:") >= (1, 4, 0)
    assert version(app, "androidx.camera:[a-z0-9-]*:") >= (1, 4, 2)
    assert version("build.gradle.kts", 'com.android.application"\\) version "') >= (8, 9, 1)
    assert version("gradle/wrapper/gradle-wrapper.properties", "gradle-") >= (8, 11, 1)


def test_android_numbers_are_those_of_the_file(tmp_path: pathlib.Path) -> None:
    from ai_edge_litert.interpreter import Interpreter

    out = project("plain", "android", "tflite", tmp_path / "out")
    facts = next(out.rglob("Model.kt")).read_text()
    places = [
        [int(number) for number in re.findall(rf"{name}_PLACES = intArrayOf\((.*)\)", facts)[0].split(",")]
        for name in ("INPUT", "OUTPUT")
    ]
    assert 'INPUTS = listOf("first", "second")' in facts
    run = Interpreter(str(out / "app/src/main/assets/model.tflite"))
    run.allocate_tensors()
    golden = out / "app/src/androidTest/assets/golden"
    for index, place in enumerate(places[0]):
        values = np.fromfile(golden / f"input_{index}.bin", np.float32).reshape(1, 3)
        run.set_tensor(run.get_input_details()[place]["index"], values)
    run.invoke()
    for index, place in enumerate(places[1]):
        wanted = np.fromfile(golden / f"output_{index}.bin", np.float32)
        given = run.get_tensor(run.get_output_details()[place]["index"])
        np.testing.assert_allclose(given.reshape(-1), wanted, rtol=1e-6)


@pytest.mark.parametrize("which", ["classifier", "plain"])
@pytest.mark.parametrize(("kind", "engine"), [item for item in engines() if item.values[0] == "ios"])
def test_ios_files_parse(which: str, kind: str, engine: str, tmp_path: pathlib.Path) -> None:
    out = project(which, kind, engine, tmp_path / "out")
    assert parsed_files(out, "swift", ".swift") == (10 if which == "classifier" else 8)
    if which == "classifier":  # as TensorFlow's camera example: averaged over frames, and a button that freezes them
        model, view = ((out / f"App/Camera{part}.swift").read_text() for part in ("Model", "View"))
        assert "let scores = average.adding(Classifier.ofClasses(outputs[0]))" in model
        assert "Classifier.best(scores, threshold: average.areShares ? 0.05 : -.infinity)" in model
        assert 'camera.areShares\n                            ? String(format: "%.0f%%", 100 * found.score)' in view
        assert "camera.freeze()" in view
    (scheme,) = out.rglob("*.xcscheme")
    ElementTree.parse(scheme)
    (place,) = out.glob("*.xcodeproj")
    found = old_plist((place / "project.pbxproj").read_text("utf-8"))
    objects = found["objects"]
    identifiers = re.findall(r"A1\d{22}", json.dumps(found))
    assert set(identifiers) == set(objects)
    settings = [item["buildSettings"] for item in objects.values() if item["isa"] == "XCBuildConfiguration"]
    camera = [item for item in settings if "INFOPLIST_KEY_NSCameraUsageDescription" in item]
    assert len(camera) == (2 if which == "classifier" else 0)
    assert {item.get("PRODUCT_BUNDLE_IDENTIFIER") for item in settings} > {app_name(TITLE).bundle}
    portrait = [item for item in settings if "INFOPLIST_KEY_UISupportedInterfaceOrientations" in item]
    assert [item["TARGETED_DEVICE_FAMILY"] for item in portrait] == ["1", "1"]  # of iPads, the store wants all four
    assert [item["COREML_CODEGEN_LANGUAGE"] for item in portrait] == ["None", "None"]  # features are named as they like
    assert (out / "Podfile").exists() == (engine == "tflite")
    for folder in (item["path"] for item in objects.values() if "SynchronizedRootGroup" in item["isa"]):
        assert (out / folder).is_dir()
    if engine == "coreml":
        assert plistlib.loads(b"<plist><dict/></plist>") == {}
        assert json.loads((out / "App/Network.mlpackage/Manifest.json").read_text())
        assert [path.name for path in out.rglob("*.check.py")] == []


def old_plist(text: str) -> Any:
    """An old property list as Xcode's projects are: dictionaries, lists, words and quoted strings."""
    pattern = r'\s+|//[^\n]*|/\*.*?\*/|(?P<token>"(?:[^"\\]|\\.)*"|[\w./$]+|[{}()=;,])'
    tokens, at = [], 0
    while at < len(text):
        match = re.compile(pattern, re.DOTALL).match(text, at)
        assert match is not None, text[at : at + 40]
        at = match.end()
        if match["token"]:
            tokens.append(match["token"])

    def value() -> Any:
        token = tokens.pop(0)
        if token == "{":
            found = {}
            while tokens[0] != "}":
                key = value()
                assert tokens.pop(0) == "="
                found[key] = value()
                assert tokens.pop(0) == ";"
            tokens.pop(0)
            return found
        if token == "(":
            items = []
            while tokens[0] != ")":
                items.append(value())
                if tokens[0] == ",":
                    tokens.pop(0)
            tokens.pop(0)
            return items
        return re.sub(r"\\(.)", r"\1", token[1:-1]) if token[0] == '"' else token

    found = value()
    assert tokens == []
    return found


def ran(words: list[str], folder: pathlib.Path) -> str:
    made = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


def test_pi_runs_on_a_picture(tmp_path: pathlib.Path) -> None:
    out = project("classifier", "pi", "tflite", tmp_path / "out")
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    assert ran([sys.executable, "test_model.py"], out).endswith("passed\n")
    said = ran([sys.executable, "main.py", f"--picture={tmp_path / 'photo.png'}", "--threshold=0"], out)
    fed = (pixels[None].astype(np.float32) - 127.5) / 64
    weights = np.float32([[0.5, -1.0, 0.1], [0.25, 2.0, 0.2], [1.0, 0.5, -0.7]])
    logits = (fed[:, ::2, ::2] @ weights).mean((1, 2))[0]
    shares = np.exp(logits) / np.exp(logits).sum()
    best = int(np.argmax(shares))
    assert f"{LABELS[best]} {shares[best]:.2f}" in said
    for module in ("camera", "pin"):
        compile((out / f"{module}.py").read_text(), module, "exec")
    unit = (out / f"{app_name(TITLE).small}.service").read_text()
    assert "100 %%" in unit
    assert all(re.fullmatch(r"\[\w+\]|\w+=.*|", line) for line in unit.splitlines())


@pytest.mark.parametrize(
    ("kind", "form", "channels"), [("pi", "jpg", 3), ("pi", "jpg", 1), ("pi", "png", 3), ("linux", "ppm", 3)]
)
def test_a_picture_of_another_shape_gives_what_label_image_gives(
    kind: str, form: str, channels: int, tmp_path: pathlib.Path
) -> None:
    """Which resizes as TensorFlow's own label_image does: the whole picture, bilinear, without smoothing."""
    if kind == "linux" and (shutil.which("cc") is None or shutil.which("make") is None):
        pytest.skip("there is no C compiler or make")
    text = CLASSIFIER if channels == 3 else GRAY_CLASSIFIER
    how = {"input_mean": 127.5, "input_std": 64.0}
    out = tmp_path / "out"
    make_project(kind, parse(text), out, name="Scores", labels=["a", "b", "c"], **how)
    pixels = np.random.default_rng(3).integers(0, 256, (31, 44, 3), dtype=np.uint8)
    if form == "png":  # gray of 16 bits
        pixels = np.random.default_rng(3).integers(0, 1 << 16, (31, 44), dtype=np.uint16)
    photo = tmp_path / f"photo.{form}"
    Image.fromarray(pixels).save(photo)
    [wanted] = label_image(parse(text), photo if kind == "pi" else pixels, ["a", "b", "c"], **how)
    if kind == "pi":
        said = ran([sys.executable, "main.py", f"--picture={photo}", "--threshold=0"], out)
        found = re.findall(r"(\w) (\d\.\d+)", said)
    else:
        ran(["make"], out)
        found = [
            (label, score) for score, label in re.findall(r"(\d\.\d+)  (\w)", ran(["bin/scores", str(photo)], out))
        ]
    assert [label for label, _ in found] == [one.label for one in wanted.predictions]
    assert [float(score) for _, score in found] == pytest.approx([one.score for one in wanted.predictions], abs=0.0051)


def test_a_picture_has_the_same_codes_on_a_pi_as_in_label_image(tmp_path: pathlib.Path) -> None:
    """Also where each value of the picture lies halfway between two codes."""
    samples = np.random.default_rng(1).uniform(-1, 1, (8, 8, 8, 3)).astype(np.float32)
    how = {"input_mean": 127.5, "input_std": 127.5}
    export(graph("classifier"), tmp_path / "net.tflite", mode="static", samples=samples, io="uint8", **how)
    make_project("pi", tmp_path / "net.tflite", tmp_path / "out")
    pixels = np.random.default_rng(3).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    code = "import numpy, model; numpy.save('fed', model.Model().fed(numpy.load('pixels.npy')))"
    np.save(tmp_path / "out/pixels.npy", pixels)
    ran([sys.executable, "-c", code], tmp_path / "out")
    file = load(tmp_path / "net.tflite")
    labeler = PictureModel(file)
    wanted = coded(file, labeler.input.tensor, labeler.input.feed_pixels(pixels, labeler.mean, labeler.std))
    np.testing.assert_array_equal(np.load(tmp_path / "out/fed.npy"), wanted)


LOGITS = CLASSIFIER.replace("scores = Softmax(pooled, T=float)", """
    less = Const(float [9, 7, 8])
    scores = Sub(pooled, less, T=float)
""")  # fmt: skip


def test_logits_are_shown_as_they_are(tmp_path: pathlib.Path) -> None:
    """Below 0 or over 1: a threshold of shares would leave out the best of them."""
    Image.new("RGB", (8, 8), (128, 128, 128)).save(tmp_path / "gray.png")
    out = tmp_path / "out"
    make_project("pi", parse(LOGITS), out, labels=["a", "b", "c"], input_mean=127.5, input_std=127.5)
    said = ran([sys.executable, "main.py", f"--picture={tmp_path / 'gray.png'}"], out)
    assert re.findall(r"(\w) (-\d\.\d+)", said) == [("b", "-6.99"), ("c", "-8.00"), ("a", "-8.99")]
    words = [sys.executable, "main.py", f"--picture={tmp_path / 'gray.png'}"]
    assert "b -6.99 (" in ran([*words, "--threshold=-7.5"], out)
    refused = subprocess.run([*words, "--pin=4"], cwd=out, capture_output=True, text=True, timeout=300)
    assert refused.returncode == 1
    assert "--pin needs --label or --threshold" in refused.stderr
    make_project("android", parse(LOGITS), tmp_path / "android")
    code = next((tmp_path / "android").rglob("Model.kt")).read_text()
    assert "val least = if (areShares) threshold else Float.NEGATIVE_INFINITY" in code
    assert "filterIndexed { place, it -> place == 0 || scores[it] > least }" in code


def test_pi_says_what_is_wrong(tmp_path: pathlib.Path) -> None:
    out = project("classifier", "pi", "tflite", tmp_path / "out")
    if find_spec("picamera2") is None and find_spec("cv2") is None:
        made = subprocess.run([sys.executable, "main.py"], cwd=out, capture_output=True, text=True, timeout=300)
        assert made.returncode == 1
        assert "no camera: install picamera2" in made.stderr
    (out / "golden.npz").write_bytes((out / "golden.npz").read_bytes())
    arrays = dict(np.load(out / "golden.npz"))
    arrays["output_0"] = arrays["output_0"] + np.float32(0.1)
    np.savez(out / "golden.npz", **arrays)
    made = subprocess.run([sys.executable, "test_model.py"], cwd=out, capture_output=True, text=True, timeout=300)
    assert made.returncode == 1
    assert "is off by" in made.stderr


def test_what_is_no_number_in_the_golden_outputs_must_be_none_here(tmp_path: pathlib.Path) -> None:
    out = project("plain", "pi", "tflite", tmp_path / "out")
    arrays = {name: array.copy() for name, array in np.load(out / "golden.npz").items()}
    plain = arrays["input_0"].copy()
    arrays["input_0"].flat[0] = np.nan
    np.savez(out / "golden.npz", **arrays)
    ran([sys.executable, "-c", """if True:
        import numpy as np
        from model import HERE, Model
        model, golden = Model(), dict(np.load(HERE / "golden.npz"))
        found = model.run([golden[f"input_{place}"] for place in range(len(model.inputs))])
        assert any(np.isnan(array).any() for array in found)
        np.savez(HERE / "golden.npz", **golden | {f"output_{n}": array for n, array in enumerate(found)})
    """], out)  # fmt: skip
    assert ran([sys.executable, "test_model.py"], out).endswith("passed\n")
    np.savez(out / "golden.npz", **dict(np.load(out / "golden.npz")) | {"input_0": plain})
    made = subprocess.run([sys.executable, "test_model.py"], cwd=out, capture_output=True, text=True, timeout=300)
    assert made.returncode == 1
    assert "is off by nan" in made.stderr


ROOTS = """
    x = Placeholder(dtype=float, shape=[1,4])
    less = Const(float 100)
    below = Sub(x, less, T=float)
    roots = Sqrt(below, T=float)
    y = Relu(x, T=float)
"""


def test_a_golden_result_without_numbers_is_no_pass(tmp_path: pathlib.Path) -> None:
    """The roots of numbers below 0 are NaN in any runtime that computes anything below 0, also in a wrong one."""
    make_project("pi", parse(ROOTS), tmp_path / "pi", outputs=["y", "roots"])
    made = subprocess.run(
        [sys.executable, "test_model.py"], cwd=tmp_path / "pi", capture_output=True, text=True, timeout=300
    )
    assert made.returncode == 1
    assert "not proven: most of what roots must give is NaN or infinite" in made.stderr
    assert "passed" not in made.stdout
    make_project("android", parse(ROOTS), tmp_path / "android", outputs=["y", "roots"])
    assert "assumeTrue(" in next((tmp_path / "android").rglob("ModelTest.kt")).read_text()
    make_project("ios", parse(ROOTS), tmp_path / "ios", outputs=["y", "roots"], engine="tflite")
    assert "XCTSkipUnless(unproven.isEmpty" in (tmp_path / "ios/Tests/ModelTests.swift").read_text()


def test_pi_runs_any_other_model(tmp_path: pathlib.Path) -> None:
    out = project("plain", "pi", "tflite", tmp_path / "out")
    assert ran([sys.executable, "test_model.py"], out).endswith("passed\n")
    assert "3 runs: median" in ran([sys.executable, "main.py", "--benchmark=3"], out)
    np.savez(tmp_path / "in.npz", first=np.float32([[1, 2, 3]]), second=np.float32([[4, 5, 6]]))
    said = ran([sys.executable, "main.py", f"--input={tmp_path / 'in.npz'}"], out)
    assert "sum [1, 3]: [5. 7. 9.]" in said
    assert "product [1, 3]: [ 4. 10. 18.]" in said


@needs_shared
def test_pi_hears_what_the_graph_hears(tmp_path: pathlib.Path) -> None:
    name = "speech_conv_actions_pardeep"
    source = model_dir(name) / model_info(name)["file"]
    make_project("pi", source, tmp_path / "out")
    time = np.arange(14000) / 16000
    wave_form = (np.sin(2 * np.pi * 300 * time * (1 + time)) * np.linspace(0.1, 0.9, 14000) * 32767).astype("<i2")
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(wave_form.tobytes())
    with Session(source) as session:
        (wanted,) = session.run(["labels_softmax"], {"wav_data": path.read_bytes()})
    said = ran([sys.executable, "main.py", f"--recording={path}", "--top=1"], tmp_path / "out")
    best = int(wanted.argmax())
    found = re.search(r"\((\d+)\): ([\d.]+)", said)
    assert found is not None, said
    assert int(found[1]) == best
    assert abs(float(found[2]) - float(wanted.max())) < 2e-3
    assert "40 mel bands" in (tmp_path / "out/README.md").read_text()


SOUND = {
    "samples": ("wave = Reshape(wav, row, T=float, Tshape=int32)", "wav = Placeholder(dtype=float, shape=[4000, 1])"),
    "decoded": ("wave = Reshape(wav, row, T=float, Tshape=int32)", ""),
    "spectrogram": ("""
        sums = AudioSpectrogram(wav, window_size=480, stride=440, magnitude_squared=true)
        spectrum = Sqrt(sums, T=float)
        far = Const(int32 [1, 2313])
        some = Reshape(spectrum, far, T=float, Tshape=int32)
        left = Const(int32 [0, 0])
        wave = Slice(some, left, size, T=float, Index=int32)
        size = Const(int32 [1, 2000])
    """, ""),
}  # fmt: skip


@pytest.mark.parametrize("form", SOUND)
def test_pi_hears_samples_and_spectrograms(form: str, tmp_path: pathlib.Path) -> None:
    middle, source = SOUND[form]
    decoded = """
        content = Placeholder(dtype=string, shape=[])
        wav = DecodeWav(content, desired_channels=1, desired_samples=4000)
    """
    count = 2000 if form == "spectrogram" else 4000
    nodes = parse(f"""
        {source or decoded}
        row = Const(int32 [1, 4000])
        {middle}
        logits = MatMul(wave, w, T=float)
        y = Softmax(logits, T=float)
    """)
    rng = np.random.default_rng(2)
    whole = Graph([*nodes, const("w", rng.normal(size=(count, 3)).astype(np.float32))])
    made = make_project("pi", whole, tmp_path / "out", labels=["a", "b", "c"], sample_rate=16000)
    assert made.shown == "a program that takes recordings"
    samples = rng.integers(-9000, 9000, 4000).astype("<i2")
    with wave.open(str(tmp_path / "sound.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 4000, "NONE", ""))
        file.writeframes(samples.tobytes())
    content = (tmp_path / "sound.wav").read_bytes()
    feeds: dict[str, Any] = {"wav": samples[:, None] / np.float32(32768)} if source else {"content": content}
    with Session(whole, engine="reference") as session:
        (wanted,) = session.run(["y"], feeds)
    said = ran([sys.executable, "main.py", f"--recording={tmp_path / 'sound.wav'}"], tmp_path / "out")
    shares = {label: float(share) for label, share in re.findall(r"(\w) \(\d\): ([\d.]+)", said)}
    assert [shares[label] for label in "abc"] == pytest.approx(wanted.reshape(-1).tolist(), abs=1e-3)
    for place, why in ((".", ".: Is a directory"), ("model.json", "model.json is no .wav file that can be read")):
        refused = subprocess.run(
            [sys.executable, "main.py", f"--recording={place}"],
            cwd=tmp_path / "out", capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert refused.returncode == 1
        assert why in refused.stderr
        assert "Traceback" not in refused.stderr


def test_a_model_of_samples_hears_on_a_pi_where_its_rate_is_said(tmp_path: pathlib.Path) -> None:
    """Other long rows are measurements."""
    row = parse("x = Placeholder(dtype=float, shape=[1,4000])\ny = Softmax(x, T=float)")
    make_project("pi", row, tmp_path / "out")
    refused = subprocess.run(
        [sys.executable, "main.py", "--recording=x.wav"],
        cwd=tmp_path / "out",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert refused.returncode == 1
    assert "make the project with --sample_rate" in refused.stderr


SPECTRUM = """
    wave = Placeholder(dtype=float, shape=[1,512])
    length = Const(int32 [512])
    spectrum = RFFT(wave, length, Treal=float, Tcomplex=complex64)
    loudness = ComplexAbs(spectrum, T=complex64, Tout=float)
    y = Softmax(loudness, T=float)
"""
RATE = """
    samples = Placeholder(dtype=float, shape=[4000,1])
    rate = Placeholder(dtype=int32, shape=[])
    spectrum = AudioSpectrogram(samples, window_size=480, stride=320, magnitude_squared=true)
    mfcc = Mfcc(spectrum, rate, dct_coefficient_count=10)
    y = Softmax(mfcc, T=float)
"""


def test_a_page_is_not_fed_samples_in_the_place_of_a_spectrum(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match=r"the model takes 'loudness' \[1, 257\].*; live hears with the whole graph"):
        make_project("web", parse(SPECTRUM), tmp_path / "site", app="speech")
    assert list(tmp_path.iterdir()) == []
    assert "again and again" in make_project("web", parse(SPECTRUM), tmp_path / "site").shown
    with pytest.raises(UsageError, match=r"input 'rate' as \[\].*; set it for good, as in values=rate=16000"):
        make_project("web", parse(RATE), tmp_path / "other")
    with pytest.raises(
        UsageError, match=r"AudioSpectrogram.*; the spectrum is the app's: inputs=mfcc names what to feed"
    ):
        make_project("web", parse(RATE), tmp_path / "other", values={"rate": np.int32(16000)})


@pytest.mark.skipif(shutil.which("cc") is None or shutil.which("make") is None, reason="there is no C compiler or make")
@pytest.mark.parametrize("kind", ["pi", "linux"])
def test_one_share_of_two_labels_is_shown_as_both(kind: str, tmp_path: pathlib.Path) -> None:
    """As by label_image; such networks were refused with labels, and ran as numbers without."""
    if kind == "linux" and (shutil.which("cc") is None or shutil.which("make") is None):
        pytest.skip("there is no C compiler or make")
    text = GRAY_CLASSIFIER.replace("[[[[0.5, -3.0, 2.0]]]]", "[[[[2.5]]]]").replace("Softmax", "Sigmoid")
    how = {"input_mean": 127.5, "input_std": 64.0}
    out, photo = tmp_path / "out", tmp_path / "photo.pgm"
    made = make_project(kind, parse(text), out, name="Scores", labels=["cat", "dog"], **how)
    assert made.has_camera
    assert "the share of the second class" in (out / "README.md").read_text()
    for grey in (90, 160):
        Image.new("L", (8, 8), grey).save(photo)
        Image.new("L", (8, 8), grey).save(tmp_path / "photo.png")
        share = 1 / (1 + np.exp(-2.5 * (grey - 127.5) / 64))
        wanted = sorted([("cat", 1 - share), ("dog", share)], key=lambda found: -found[1])
        if kind == "pi":
            said = ran([sys.executable, "main.py", f"--picture={tmp_path / 'photo.png'}", "--threshold=0"], out)
            found = re.findall(r"([a-z]+) (\d\.\d+)", said.partition("photo.png: ")[2])
        else:
            ran(["make"], out)
            lines = ran(["bin/scores", str(photo)], out).splitlines()[1:]
            found = [(label, score) for score, label in map(str.split, lines)]
        assert [label for label, _ in found] == [label for label, _ in wanted]
        assert [float(score) for _, score in found] == pytest.approx([score for _, score in wanted], abs=0.0051)


def test_one_number_that_is_no_share_has_no_labels(tmp_path: pathlib.Path) -> None:
    logit = CLASSIFIER.replace("[[0.5, -1.0, 0.1], [0.25, 2.0, 0.2], [1.0, 0.5, -0.7]]", "[[0.5], [0.25], [1.0]]")
    logit = logit.replace("Softmax", "Identity")
    with pytest.raises(UsageError, match="labels are for scores of classes"):
        make_project("pi", parse(logit), tmp_path / "out", labels=["cat", "dog"])


def test_linux_without_labels(tmp_path: pathlib.Path) -> None:
    make_project("linux", graph("classifier"), tmp_path / "out", name="Plain")
    assert "  class " in ran(["make", "check"], tmp_path / "out")


@pytest.mark.skipif(shutil.which("cc") is None or shutil.which("make") is None, reason="there is no C compiler or make")
@pytest.mark.parametrize("which", ["classifier", "plain"])
def test_linux_compiles_and_runs(which: str, tmp_path: pathlib.Path) -> None:
    out = project(which, "linux", "c", tmp_path / "out")
    flags = "CFLAGS=-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
    assert "passed" in ran(["make", flags, "check"], out)
    program = f"bin/{app_name(TITLE).small}"
    if which == "plain":
        np.float32([[1, 2, 3]]).tofile(tmp_path / "a.bin")
        np.float32([[4, 5, 6]]).tofile(tmp_path / "b.bin")
        said = ran([program, "-n", "2", str(tmp_path / "a.bin"), str(tmp_path / "b.bin")], out)
        assert "sum: 5 7 9" in said
        assert "product: 4 10 18" in said
        return
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.ppm")
    said = ran([program, "-t", "1", str(tmp_path / "photo.ppm")], out)
    weights = np.float32([[0.5, -1.0, 0.1], [0.25, 2.0, 0.2], [1.0, 0.5, -0.7]])
    logits = (((pixels[::2, ::2].astype(np.float32) - 127.5) / 64) @ weights).mean((0, 1))
    shares = np.exp(logits) / np.exp(logits).sum()
    assert said.splitlines()[1].strip() == f"{shares.max():.4f}  {LABELS[int(shares.argmax())]}"
    with open(tmp_path / "photo.ppm", "rb") as file:
        stream = file.read() * 2
    made = subprocess.run([program, "-"], cwd=out, input=stream, capture_output=True, timeout=300)
    assert made.returncode == 0
    assert made.stdout.count(b" ms") == 2
    broken = tmp_path / "broken.ppm"
    for content in (b"", b"P6\n8 8\n255\n123", b"P6 99999 99999 255 ", b"P6\n0 8\n255\n", b"no picture"):
        broken.write_bytes(content)
        made = subprocess.run([program, str(broken)], cwd=out, capture_output=True, timeout=300)
        assert made.returncode == 1
        assert b"not a binary .ppm" in made.stderr
    made = subprocess.run([program, "none.ppm"], cwd=out, capture_output=True, timeout=300)
    assert made.returncode == 1
    assert made.stderr == b"none.ppm: cannot be opened\n"


@pytest.mark.parametrize(("last", "are_scores"), [("Identity", False), ("Softmax", True), ("LogSoftmax", True)])
def test_numbers_that_nobody_named_are_no_classes(tmp_path: pathlib.Path, last: str, are_scores: bool) -> None:
    """A forecast of three numbers is shown as such, shares of three classes by the largest."""
    forecast = parse(f"""
        x = Placeholder(dtype=float, shape=[?,2])
        w = Const(float [[1, 2, 3], [4, 5, 6]])
        sums = MatMul(x, w, T=float)
        y = {last}(sums, T=float)
    """)
    for kind in ("pi", "web"):
        make_project(kind, forecast, tmp_path / kind)
        assert ("a score for each class" in (tmp_path / kind / "README.md").read_text()) is are_scores
    labelled = make_project("pi", forecast, tmp_path / "labelled", labels=["a", "b", "c"])
    assert labelled.kind == "pi"
    assert "a score for each class" in (tmp_path / "labelled" / "README.md").read_text()
    export(forecast, tmp_path / "net.tflite")
    samples = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    export(forecast, tmp_path / "bytes.tflite", samples=samples, mode="static", io="uint8")
    for name in ("net", "bytes"):
        make_project("pi", tmp_path / f"{name}.tflite", tmp_path / name)
        assert ("a score for each class" in (tmp_path / name / "README.md").read_text()) is are_scores


def test_pictures_are_as_large_as_the_graph_makes_them(tmp_path: pathlib.Path) -> None:
    """A model that resizes pictures of any size needs no size to be said."""
    text = """
        x = Placeholder(dtype=float, shape=[?,?,?,3])
        size = Const(int32 [6, 4])
        small = ResizeBilinear(x, size, T=float)
        y = Relu(small, T=float)
    """
    made = make_project("pi", parse(text), tmp_path / "out")
    assert "pictures are 4 x 6, as the graph resizes those of 'x' to that" in made.notes
    facts = json.loads((tmp_path / "out" / "model.json").read_text())
    assert facts["inputs"][0]["shape"] == [1, 6, 4, 3]
    other = parse(text.replace("size, T=float", "size, T=float, align_corners=true"))
    notes = make_project("pi", other, tmp_path / "other").notes
    assert any("it resizes with align_corners=true and the app without" in note for note in notes)
    save(parse(text), tmp_path / "net.pb")
    pocketgraph.ship(tmp_path / "net.pb", tmp_path / "shipped")
    make_project("pi", tmp_path / "shipped" / "model.tflite", tmp_path / "finished")
    facts = json.loads((tmp_path / "finished" / "model.json").read_text())
    assert facts["inputs"][0]["shape"] == [1, 6, 4, 3]


def test_a_finished_file_goes_in_as_it_is(tmp_path: pathlib.Path) -> None:
    """In eight bits, with its own labels and normalization."""
    samples = np.random.default_rng(1).uniform(-2, 2, (16, 8, 8, 3)).astype(np.float32)
    export(
        graph("classifier"), tmp_path / "net.tflite", mode="static", samples=samples, labels=LABELS, input_mean=127.5,
        input_std=64.0, io="int8",
    )  # fmt: skip
    made = make_project("pi", tmp_path / "net.tflite", tmp_path / "out")
    assert made.has_camera
    assert (tmp_path / "out/model.tflite").read_bytes() == (tmp_path / "net.tflite").read_bytes()
    assert "`main.py --picture=photo.jpg`" in (tmp_path / "out/README.md").read_text("utf-8")
    facts = json.loads((tmp_path / "out/model.json").read_text())
    assert (facts["picture"]["mean"], facts["picture"]["std"]) == ([127.5] * 3, [64.0] * 3)
    assert (tmp_path / "out/labels.txt").read_text("utf-8").splitlines() == LABELS
    assert ran([sys.executable, "test_model.py"], tmp_path / "out").endswith("passed\n")
    Image.new("RGB", (9, 7), (200, 10, 10)).save(tmp_path / "red.png")
    said = ran([sys.executable, "main.py", f"--picture={tmp_path / 'red.png'}", "--threshold=0"], tmp_path / "out")
    assert any(label in said for label in LABELS)
    with pytest.raises(UsageError, match="no int8"):
        make_project("ios", tmp_path / "net.tflite", tmp_path / "other", engine="tflite")
    with pytest.raises(
        UsageError, match=r"is finished already; .* or the SavedModel, or a kind that runs the file itself: android, "
    ):
        make_project("linux", tmp_path / "net.tflite", tmp_path / "other")
    with pytest.raises(UsageError, match=r"a project for ios with engine=coreml starts from .* or engine=tflite"):
        make_project("ios", tmp_path / "net.tflite", tmp_path / "other", engine="coreml")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("place", ["model/net.tflite", "model"])
def test_a_finished_file_alone_is_run_by_litert_on_ios(place: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "model").mkdir()
    export(graph("classifier"), tmp_path / "model" / "net.tflite", labels=LABELS)
    made = make_project("ios", tmp_path / place, tmp_path / "out")
    assert (tmp_path / "out/App/labels.txt").read_text("utf-8").splitlines() == LABELS
    assert (tmp_path / "out/App/Network.tflite").read_bytes() == (tmp_path / "model" / "net.tflite").read_bytes()
    assert any("net.tflite itself, by LiteRT" in note for note in made.notes)


def test_a_finished_file_is_built_of_the_graph_beside_it_where_its_kind_takes_graphs(tmp_path: pathlib.Path) -> None:
    """As ``ship`` leaves both; with the labels and normalization that the file states."""
    pocketgraph.save(graph("classifier"), tmp_path / "frozen.pb")
    export(graph("classifier"), tmp_path / "model.tflite", labels=LABELS, input_mean=127.5, input_std=64.0)
    made = make_project("linux", tmp_path / "model.tflite", tmp_path / "of_file", name="One")
    plain = make_project(
        "linux", tmp_path / "frozen.pb", tmp_path / "of_graph", name="One", labels=LABELS, input_mean=127.5,
        input_std=64.0,
    )  # fmt: skip
    (note,) = [note for note in made.notes if "is built of the graph" in note]
    assert "frozen.pb" in note
    assert set(plain.notes) == set(made.notes) - {note}
    for name in ("README.md", "main.c"):
        assert (tmp_path / "of_file" / name).read_text() == (tmp_path / "of_graph" / name).read_text()
    if find_spec("coremltools") is None:
        with pytest.raises(MissingExtraError, match="coreml"):  # and not that the file is finished
            make_project("ios", tmp_path / "model.tflite", tmp_path / "phone", name="One")
    else:
        made = make_project("ios", tmp_path / "model.tflite", tmp_path / "phone", name="One")
        assert any("is built of the graph" in note for note in made.notes)
    pocketgraph.save(parse("other = Placeholder(dtype=float, shape=[1,4])\ny = Relu(other)"), tmp_path / "frozen.pb")
    with pytest.raises(UsageError, match="is finished already"):  # the graph beside it is another's
        make_project("linux", tmp_path / "model.tflite", tmp_path / "of_another", name="One")


@pytest.mark.parametrize(
    ("last", "mean", "is_said"),
    [
        ("scores = Mean(x, axes, T=float, Tidx=int32)", 0.0, False),
        ('joints = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")', 127.5, True),
    ],
)
def test_the_readme_of_a_page_states_the_scaling_of_pixels_that_it_feeds(
    last: str, mean: float, is_said: bool, tmp_path: pathlib.Path
) -> None:
    """Where nothing tells it, that is said; joints of people are found in pixels from -1 to 1."""
    net = parse(f"""
        x = Placeholder(dtype=float, shape=[1,16,16,3])
        axes = Const(int32 [1, 2])
        w = Const(float[1,1,3,57] 0.01)
        {last}
    """)
    made = make_project("web", net, tmp_path / "out")
    told = json.loads((tmp_path / "out/public/model.json").read_text())["input"]
    assert told["mean"] == [mean] * 3
    readme = (tmp_path / "out/README.md").read_text("utf-8")
    assert f"(value from 0 to 255 - {mean:g}) / {told['std'][0]:g}" in readme
    assert ("nothing told how pixels were scaled" in readme) != is_said
    assert any("input_mean=127.5" in note for note in made.notes) != is_said
    said = make_project("pi", net, tmp_path / "pi", input_mean=0, input_std=255)
    assert not any("nothing told" in note for note in said.notes)


@pytest.mark.parametrize("kind", ["web", "linux"])
def test_labels_beside_a_model_name_the_classes_of_a_project(kind: str, tmp_path: pathlib.Path) -> None:
    net = graph("classifier")
    pocketgraph.save(net.replace(outputs=()), tmp_path / "net.pb")
    (tmp_path / "flower_labels.txt").write_text("\n".join(LABELS))
    told: list[str] = []
    made = make_project(kind, tmp_path / "net.pb", tmp_path / "out", notify=told.append)
    assert any("flower_labels.txt' names the classes" in line for line in told)
    text = "".join(pathlib.Path(file).read_text("utf-8", "replace") for file in made.files if not file.endswith(".png"))
    assert sum(label.encode("ascii", "ignore").decode() in text for label in LABELS) >= 2  # C escapes some letters


@pytest.mark.parametrize(
    ("dtype", "scale", "zero", "scaling"),
    [
        (UINT8, 1 / 127.5, 128, (127.5, 127.5)), (INT8, 1 / 127.5, -1, (127.5, 127.5)), (UINT8, 1 / 255, 0, (0, 255)),
        (INT8, 1 / 255, -128, (0, 255)), (INT8, 1.0, -128, (0, 1)), (INT8, 0.0186584, -14, (114, 1 / 0.0186584)),
    ],
)  # fmt: skip
def test_codes_tell_how_pictures_are_scaled_where_nothing_else_does(
    dtype: DType, scale: float, zero: int, scaling: tuple[float, float], tmp_path: pathlib.Path
) -> None:
    coding = Quantization((scale,), (zero,))
    pixels, means = Value("x", dtype, (1, 8, 8, 3), None, coding), Value("y", dtype, (1, 3), None, coding)
    axes = Value("axes", INT32, (2,), Constant.of(np.array([1, 2], np.int32)))
    program = Program([pixels], [means], [Operation("MEAN", [pixels, axes], [means], {"keep_dims": False})])
    (tmp_path / "net.tflite").write_bytes(model_bytes(program))
    Image.new("RGB", (8, 8), (255, 128, 0)).save(tmp_path / "orange.png")
    model = PictureModel(load(tmp_path / "net.tflite"))
    (made,) = model.of_file(tmp_path / "orange.png")
    wanted = (np.array([255, 128, 0]) - scaling[0]) / scaling[1]
    np.testing.assert_allclose(made.reshape(-1), wanted, atol=1.01 * scale)
    make_project("pi", tmp_path / "net.tflite", tmp_path / "pi")
    told = json.loads((tmp_path / "pi/model.json").read_text())["picture"]
    np.testing.assert_allclose([told["mean"], told["std"]], np.transpose([scaling] * 3), rtol=1e-4)
    if dtype is UINT8:
        make_project("web", tmp_path / "net.tflite", tmp_path / "web")
        told = json.loads((tmp_path / "web/public/model.json").read_text())["input"]
        np.testing.assert_allclose([told["mean"], told["std"]], np.transpose([scaling] * 3), rtol=1e-4)
        assert told["whole"] is False  # the page makes codes of what is scaled
    make_project("pi", tmp_path / "net.tflite", tmp_path / "said", input_mean=3, input_std=7)
    told = json.loads((tmp_path / "said/model.json").read_text())["picture"]
    assert (told["mean"], told["std"]) == ([3] * 3, [7] * 3)


def test_names_that_languages_do_not_take() -> None:
    assert app_name("Flowers").package == "com.example.flowers"
    assert app_name("int").word == "IntApp"
    assert app_name("photos").word == "PhotosApp"  # of Apple's, which PhotosUI imports
    assert app_name("my cat-detector 2").word == "MyCatDetector2"
    assert app_name("class").package == "com.example.classapp"
    assert app_name("A" * 90).word == "A" * 40
    for title in ("", "  ", "a\nb", "123", "☘☘"):
        with pytest.raises(UsageError):
            app_name(title)
    for package in (
        "flowers",
        "com.1example.x",
        "com..x",
        "com.example.class",
        "com.exa-mple.x",
        "com.example.fun",
        "a.b.ü",
    ):
        with pytest.raises(UsageError, match="package"):
            app_name("Flowers", package)
    assert app_name("Flowers", "org.my_self.x").bundle == "org.my-self.x"
    assert in_kotlin('$a "b" \\') == '"\\$a \\"b\\" \\\\"'
    assert in_swift('a "\\(b)"\t') == '"a \\"\\\\(b)\\"\\u{9}"'
    assert in_swift("\\u0041 é\n") == '"\\\\u0041 é\\u{a}"'  # the letters of an escape; a break beside an accent
    assert in_android("@home") == "\\@home"


def test_what_does_not_fit_is_refused_and_leaves_nothing(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    open_sizes = parse("x = Placeholder(dtype=float, shape=[1, ?])\ny = Relu(x, T=float)")
    texts = parse("x = Placeholder(dtype=string, shape=[1])\ny = StringToNumber(x, out_type=float)")
    no_scores = parse("x = Placeholder(dtype=float, shape=[1, 8, 8, 3])\ny = Relu(x, T=float)")
    cases: list[tuple[str, Any, dict[str, Any], str]] = [
        ("pi", graph("classifier"), {"labels": ["a", "b"]}, "there are 2 labels and 3 scores"),
        ("pi", no_scores, {"labels": ["a", "b"]}, "labels are for scores of classes"),
        ("pi", open_sizes, {}, "needs fixed sizes"),
        ("pi", texts, {}, "arrays of numbers"),
        ("phone", graph("classifier"), {}, "no kind of project 'phone'"),
        ("pi", graph("classifier"), {"engine": "coreml"}, "not built on 'coreml'"),
        ("pi", graph("classifier"), {"package": "x"}, "no dot"),
    ]
    for kind, model, how, says in cases:
        with pytest.raises(UsageError, match=says):
            make_project(kind, model, out, **how)
    assert list(tmp_path.iterdir()) == []
    assert not make_project("pi", no_scores, out).has_camera


def test_android_shows_why_a_model_does_not_load_or_run(tmp_path: pathlib.Path) -> None:
    make_project("android", graph("classifier"), tmp_path / "out")
    sources = {file.name: file.read_text() for file in (tmp_path / "out").rglob("*Activity.kt")}
    uses = re.compile(r"answer\(frame|measured\(\)\s*}")  # where an exception would end the process
    for source in sources.values():
        lines = [line for line in source.splitlines() if uses.search(line)]
        assert lines
        assert all("runCatching" in line for line in lines)
    assert all(source.count("getOrElse(Throwable::toString)") == 1 for source in sources.values())


def test_a_lacking_package_is_named_with_the_engine_that_needs_none(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "find_spec", lambda package: None)
    with pytest.raises(MissingExtraError) as caught:
        make_project("ios", graph("classifier"), tmp_path / "out")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("pip install 'pocketgraph[coreml]', or engine=tflite")
    assert list(tmp_path.iterdir()) == []
    assert make_project("ios", graph("classifier"), tmp_path / "out", engine="tflite").kind == "ios"


def test_a_folder_with_something_in_it(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        make_project("pi", graph("classifier"), out)
    make_project("pi", graph("classifier"), out, force=True)
    assert (out / "mine.txt").read_text() == "mine"
    assert (out / "main.py").exists()


def test_a_full_disk_leaves_nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def full(place: str, mode: str) -> Any:
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(place)
        return open(place, mode)

    monkeypatch.setattr(files, "open", full, raising=False)
    with pytest.raises(PocketgraphError, match="no space left") as refused:
        make_project("pi", graph("classifier"), tmp_path / "out")
    assert refused.value.where.startswith(str(tmp_path / "out" / ""))  # no folder that is gone at the end
    assert ".part" not in str(refused.value)
    assert len(written) == 3
    assert list(tmp_path.iterdir()) == []


def test_the_command(tmp_path: pathlib.Path, capsys: Any) -> None:
    save(graph("classifier"), tmp_path / "net.pb")
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    out = tmp_path / "flower-app"
    words = ["app", "pi", str(tmp_path / "net.pb"), "-o", str(out), f"--labels={tmp_path / 'labels.txt'}"]
    assert call(*words, "--input_mean=127.5", "--input_std=127.5") == 0
    assert "a camera app" in capsys.readouterr().out
    assert (out / "README.md").read_text().startswith("# Flower app\n")
    assert call(*words) == 2
    assert "not empty" in capsys.readouterr().err
    assert call("app", "toaster", str(tmp_path / "net.pb"), "-o", str(tmp_path / "x")) == 2
    assert "there are android, ios, pi, web, linux" in capsys.readouterr().err
    assert call("app", str(tmp_path / "net.pb"), "web", "-o", "new") == 2
    assert f"comes before the model; pocketgraph app web {tmp_path / 'net.pb'} -o new" in capsys.readouterr().err
    assert call("app", "--help") == 0
    assert "Raspberry Pi" in capsys.readouterr().out


def test_labels_of_a_model_that_selects_boxes_are_not_what_is_said_first(tmp_path: pathlib.Path) -> None:
    detector = parse("""
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        v = Const(float[3,3,3,4] 0.5)
        boxes = Conv2D(x, v, T=float, strides=[1,4,4,1], padding="SAME")
        to = Const(int32[2] [4, 4])
        rows = Reshape(boxes, to, T=float)
        w = Const(float[3,3,3,1] 0.5)
        sure = Conv2D(x, w, T=float, strides=[1,4,4,1], padding="SAME")
        flat = Const(int32[1] [4])
        scores = Reshape(sure, flat, T=float)
        count = Const(int32 2)
        share = Const(float 0.5)
        kept = NonMaxSuppressionV3(rows, scores, count, share, share, T=float)
        axis = Const(int32 0)
        detection_boxes = GatherV2(rows, kept, axis, Tparams=float, Tindices=int32, Taxis=int32)
    """)
    save(detector, tmp_path / "net.pb")
    with pytest.raises(UsageError) as error:
        make_project("android", tmp_path / "net.pb", tmp_path / "app", labels=["cat", "dog"])
    assert "selects boxes itself" in str(error.value)
    assert "outputs=rows,scores" in error.value.hint
    assert make_project("android", tmp_path / "net.pb", tmp_path / "app", outputs=["rows", "scores"]).files


def test_a_spectrum_in_front_of_a_model_is_no_text(tmp_path: pathlib.Path) -> None:
    made = parse("""
        wave = Placeholder(dtype=float, shape=[1,512])
        length = Const(int32 [512])
        spectrum = RFFT(wave, length, Treal=float, Tcomplex=complex64)
        loudness = ComplexAbs(spectrum, T=complex64, Tout=float)
        y = MatMul(loudness, w, T=float)
    """)
    weights = const("w", np.random.default_rng(1).normal(size=(257, 2)).astype(np.float32))
    make_project("linux", Graph([*made, weights]), tmp_path / "app")
    page = (tmp_path / "app" / "README.md").read_text()
    assert "The model takes a spectrum: the app makes 'loudness' (float [1, 257]) of 'wave'" in page
    assert "of a text" not in page


@pytest.mark.parametrize("outputs", [["names"], ["names", "y"]])
def test_a_table_of_the_graph_names_the_classes_of_a_project(tmp_path: pathlib.Path, outputs: list[str]) -> None:
    """Whose texts are no output that an app reads."""
    nodes = parse("""
        x = Placeholder(dtype=float, shape=[?,2])
        w = Const(float [[1, 2, 3], [4, 5, 6]])
        sums = MatMul(x, w, T=float)
        y = Softmax(sums, T=float)
        axis = Const(int32 1)
        best = ArgMax(y, axis, T=float, Tidx=int32, output_type=int64)
        table = HashTableV2(key_dtype=int64, value_dtype=string, shared_name="classes")
        keys = Const(int64 [0, 1, 2])
        words = Const(string ["ant", "bee", "cat"])
        fill = LookupTableImportV2(table, keys, words, Tin=int64, Tout=string)
        none = Const(string "none")
        names = LookupTableFindV2(table, best, none, ^fill, Tin=int64, Tout=string)
    """)
    named = Graph(nodes, outputs=outputs)
    for kind in ("pi", "web"):
        make_project(kind, named, tmp_path / kind)
    assert (tmp_path / "pi/labels.txt").read_text().split() == ["ant", "bee", "cat"]
    assert '"bee"' in (tmp_path / "web/public/model.json").read_text()
    for suffix in ("tflite", "onnx"):
        made = export(named, tmp_path / f"net.{suffix}")
        assert [output.name for output in made.checks[0].outputs] == ["y"]


@pytest.mark.parametrize(
    ("sizes", "is_told"), [([1, 3, 16, 16], True), ([1, 16, 16, 3], False), ([1, 16, 16, 8], False)]
)
def test_an_app_without_pictures_says_that_channels_come_first(
    sizes: list[int], is_told: bool, tmp_path: pathlib.Path
) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape={sizes})
        axes = Const(int32 [2, 3])
        means = Mean(x, axes, T=float, Tidx=int32)
        y = Softmax(means, T=float)
    """)
    made = make_project("android", graph, tmp_path / "out")
    told = [note for note in made.notes if "the channels of a picture first, [1, 3, 16, 16] (NCHW)" in note]
    assert bool(told) is is_told


def test_the_command_for_pictures_with_channels_first_runs_as_it_is_printed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    save(parse("""
        x = Placeholder(dtype=float, shape=[1,3,16,16])
        axes = Const(int32 [2, 3])
        means = Mean(x, axes, T=float, Tidx=int32)
        y = Softmax(means, T=float)
    """), "net.pb")  # fmt: skip
    assert call("app", "android", "net.pb", "-o", "my app") == 0
    command = capsys.readouterr().err.partition("so this one takes arrays; `")[2].partition("`")[0]
    assert call(*shlex.split(command)[1:]) == 0
    assert "shows" in capsys.readouterr().out


def test_labels_are_of_the_scores_and_not_of_the_box_beside_them(tmp_path: pathlib.Path) -> None:
    """As a localizer gives both, the box first."""
    located = Graph([
        *parse("""
            x = Placeholder(dtype=float, shape=[1,8,8,3])
            axes = Const(int32[2] [1, 2])
            means = Mean(x, axes, T=float, Tidx=int32)
            corners = MatMul(means, wide, T=float)
            box = Sigmoid(corners, T=float)
            logits = MatMul(means, deep, T=float)
            classes = Softmax(logits, T=float)
        """),
        const("wide", np.eye(3, 4, dtype=np.float32)), const("deep", np.ones((3, 4), np.float32)),
    ])  # fmt: skip
    names = ["cat", "dog", "bird", "fish"]
    for outputs in (["box", "classes"], None):
        make_project("web", located, tmp_path / "page", labels=names, outputs=outputs, force=True)
        facts = json.loads((tmp_path / "page/public/model.json").read_text())
        assert facts["kind"] == "classify"
        assert facts["outputs"][0]["name"] == "classes"
    export(located, tmp_path / "net.tflite", labels=names, outputs=["box", "classes"])
    about = metadata(load(tmp_path / "net.tflite").extra)
    assert about is not None
    assert about.outputs == ("box", "probability")


@pytest.mark.parametrize(
    ("last", "note"),
    [
        ("y = Relu(x, T=float)", "[1, N]; the output 'y:0' is float[1, 8, 8, 3]"),
        ("y = Relu(rows, T=float)", "there are 2 labels and 192 scores in the output 'y:0'"),
    ],
)
def test_labels_of_a_file_that_are_not_of_its_scores_are_left_out(last: str, note: str, tmp_path: pathlib.Path) -> None:
    """As segmentation and landmark models have them, of the classes of pixels or of another output."""
    named = parse("a = Placeholder(dtype=float, shape=[1,2])\nb = Softmax(a, T=float)")
    export(named, tmp_path / "named.tflite", labels=["left", "right"])
    about = facts((tmp_path / "named.tflite").read_bytes()).metadata
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        one_row = Const(int32[2] [1, 192])
        rows = Reshape(x, one_row, T=float, Tshape=int32)
        {last}
    """)
    content = model_bytes(float_program(graph.replace(outputs=["y"]), ["y"]), (), about)
    content += archive({"labels.txt": b"left\nright\n"}, len(content))
    (tmp_path / "net.tflite").write_bytes(content)
    told = metadata(load(tmp_path / "net.tflite").extra)
    assert told is not None
    assert told.labels == ("left", "right")
    made = make_project("pi", tmp_path / "net.tflite", tmp_path / "pi")
    (left_out,) = (line for line in made.notes if "labels" in line)
    assert left_out.startswith("the labels in the file's metadata are left out: ")
    assert note in left_out
    assert not (tmp_path / "pi/labels.txt").exists()
    with pytest.raises(UsageError, match="labels"):
        make_project("pi", tmp_path / "net.tflite", tmp_path / "other", labels=["left", "right"])


BOXES = """
    image = Placeholder(dtype=float, shape=[1,8,8,3])
    axes = Const(int32[1] [3])
    rows = Const(int32[2] [-1, 4])
    flat = Mean(image, axes, T=float, Tidx=int32)
    found/boxes = Reshape(flat, rows, T=float, Tshape=int32)
    of_four = Const(int32[1] [1])
    found/scores = Mean(found/boxes, of_four, T=float, Tidx=int32)
    column = Const(int32 1)
    found/classes = ArgMax(found/boxes, column, T=float, output_type=int64)
"""


def test_a_detectors_classes_of_64_bits_are_narrow_on_the_page(tmp_path: pathlib.Path) -> None:
    tensors = {part: f"found/{part}:0" for part in ("boxes", "scores", "classes")}
    signature = Signature({"image": "image:0"}, tensors)
    graph = parse(BOXES).replace(signatures={DEFAULT_SIGNATURE: signature})
    made = make_project("web", graph, tmp_path / "page")
    facts = json.loads((tmp_path / "page/public/model.json").read_text())
    types = {part: port["dtype"] for part, port in zip(facts["parts"], facts["outputs"], strict=True)}
    assert types == {"boxes": "float32", "scores": "float32", "classes": "int32"}
    assert made.shown == "a page that shows boxes around things, followed over frames"


def test_a_page_for_boxes_that_nothing_decodes_says_how_they_are_read(tmp_path: pathlib.Path) -> None:
    graph = parse(BOXES.replace("[-1, 4]", "[1, -1, 4]").replace("rows = Const(int32[2]", "rows = Const(int32[3]"))
    made = make_project("web", graph, tmp_path / "page", outputs=["found/boxes"])
    hint = "save the model with outputs called boxes, [n, 4] of top, left, bottom, right, and scores, [n]"
    assert f"nothing tells how 'found/boxes' [1, 16, 4] is read; where these are boxes, {hint}" in made.notes
    with pytest.raises(UsageError, match=r"no detector's that is known; save the model with outputs called boxes"):
        make_project("web", graph, tmp_path / "other", app="detect")


def test_c_is_not_made_of_a_file_and_the_kinds_that_run_one_are_named(tmp_path: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[1,2])\ny = Relu(x, T=float)")
    pocketgraph.export(graph, tmp_path / "net.tflite")
    with pytest.raises(UsageError, match="a kind that runs the file itself: android, ios, pi, web"):
        make_project("linux", tmp_path / "net.tflite", tmp_path / "app")
    assert not (tmp_path / "app").exists()


def test_a_model_that_magnifies_rounding_is_sent_to_export_and_its_file_is_taken(
    tmp_path: pathlib.Path, capsys: Any
) -> None:
    """``app`` has no ``--tolerance`` to pass, ``export`` has."""
    weights = np.random.default_rng(0).random((64, 8), np.float32) * 1e5
    x = "x = Placeholder(dtype=float, shape=[1, 64])"
    graph = parse(f"{x}\nw = Const(float 0.0)\nm = MatMul(x, w, T=float)\ny = Sin(m, T=float)")
    model, file, out = str(tmp_path / "net.pb"), str(tmp_path / "net.tflite"), str(tmp_path / "out")
    save(graph.map_nodes(lambda node: const("w", weights) if node.name == "w" else node), model)
    assert call("app", "pi", model, "-o", out) == 1
    said = capsys.readouterr().err
    told = re.search(r"--tolerance=(\S+) of the command export, whose \.tflite file app takes", said)
    assert told is not None
    assert not (tmp_path / "out").exists()
    assert call("export", model, "-o", file, f"--tolerance={told[1]}") == 0
    assert call("app", "pi", file, "-o", out) == 0


def test_a_model_without_inputs_has_no_app(tmp_path: pathlib.Path) -> None:
    graph = parse("w = Const(float [1, 2])\ny = Relu(w, T=float)")
    with pytest.raises(UsageError, match="the model has no inputs, and an app has nothing to give it"):
        make_project("linux", Graph([*graph], outputs=["y"]), tmp_path / "app")
    assert not (tmp_path / "app").exists()
