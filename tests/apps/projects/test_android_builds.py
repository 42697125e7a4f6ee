"""Android projects compile, and compute what the product computes: where the compilers for Android are installed.

`make android_check` says what they are. The app's classes are compiled against Android's own android.jar, and run by a
plain Java with stand-ins for a few of Android's classes; LiteRT itself runs in a process of Python.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pocketgraph.apps.label_image import label_image
from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.apps.projects import make_project
from pocketgraph.exporting import export
from pocketgraph.formats import load, save
from pocketgraph.graph import Graph
from pocketgraph.graph.graph import DEFAULT_SIGNATURE, Signature
from pocketgraph.graph.text_format import parse
from support import model_dir, shared

HERE = pathlib.Path(__file__).parent.parent
STUBS = HERE / "android_stubs"
KOTLIN = pathlib.Path(os.environ.get("KOTLIN_HOME", "/usr/share/kotlin/kotlinc"))
SDK = pathlib.Path(os.environ.get("ANDROID_HOME", "/usr/lib/android-sdk"))
JARS = [pathlib.Path("/usr/share/java") / name for name in ("junit4.jar", "hamcrest.jar")]
KOTLIN_JARS = [KOTLIN / "lib" / name for name in ("kotlin-stdlib.jar", "annotations-13.0.jar")]
ANDROID = max(SDK.glob("platforms/android-*/android.jar"), key=lambda jar: int(jar.parent.name[8:]), default=SDK)
MISSING = [
    *(program for program in ("javac", "java", "aapt2") if shutil.which(program) is None),
    *(str(file) for file in (*JARS, *KOTLIN_JARS, KOTLIN / "bin/kotlinc") if not file.exists()),
    *([] if ANDROID.is_file() else [f"{SDK}/platforms/android-*/android.jar"]),
]
needs_compilers = pytest.mark.skipif(bool(MISSING), reason=f"not installed (make android_check): {', '.join(MISSING)}")
CLASSES = """
    pixels = Placeholder(dtype=float, shape=[?, 8, 8, 3])
    w = Const(float [[[[0.5, -1.0, 0.1], [0.25, 2.0, 0.2], [1.0, 0.5, -0.7]]]])
    conv = Conv2D(pixels, w, T=float, strides=[1, 2, 2, 1], padding="SAME", data_format="NHWC")
    axes = Const(int32 [1, 2])
    pooled = Mean(conv, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(pooled, T=float)
"""
LOGITS = CLASSES.replace("scores = Softmax(pooled, T=float)", """
    less = Const(float [9, 7, 8])
    scores = Sub(pooled, less, T=float)
""")  # fmt: skip
GRAY = """
    pixels = Placeholder(dtype=float, shape=[?, 8, 8, 1])
    w = Const(float [[[[0.5, -3.0, 2.0]]]])
    conv = Conv2D(pixels, w, T=float, strides=[1, 2, 2, 1], padding="SAME", data_format="NHWC")
    axes = Const(int32 [1, 2])
    pooled = Mean(conv, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Softmax(pooled, T=float)
"""
OF_TWO = """
    pixels = Placeholder(dtype=float, shape=[?, 8, 8, 3])
    axes = Const(int32 [1, 2, 3])
    pooled = Mean(pixels, axes, T=float, Tidx=int32, keep_dims=false)
    shape = Const(int32 [-1, 1])
    column = Reshape(pooled, shape, T=float, Tshape=int32)
    share = Sigmoid(column, T=float)
"""
NAMES = """
    in/val.x-1 = Placeholder(dtype=float, shape=[?, 3])
    is = Placeholder(dtype=int32, shape=[?, 3])
    floats = Cast(is, SrcT=int32, DstT=float)
    fun/when = Add(in/val.x-1, floats, T=float)
    object = Greater(in/val.x-1, floats, T=float)
    long = Cast(is, SrcT=int32, DstT=int64)
"""
GIVEN = ("fun/when", "object", "long")
OLD = """
    x = Placeholder(dtype=float, shape=[?, 2])
    k = Placeholder(dtype=int32, shape=[1])
    factor = Cast(k, SrcT=int32, DstT=float)
    scope/y = Mul(x, factor, T=float)
    count = Cast(k, SrcT=int32, DstT=int64)
"""
LABELS = ['a "rose"', "dandelion \\", "$tulip, ☘"]
SCALED: dict[str, Any] = {"labels": LABELS, "input_mean": 127.5, "input_std": 64.0}
TITLE = 'Joe\'s "best" <Flowers> & $more \\ 100 % @title@ ü'


def source_of(name: str, folder: pathlib.Path) -> tuple[Graph | pathlib.Path, dict[str, Any]]:
    """A model, and how its project is made."""
    if name in REAL:
        home = model_dir("mobilenet_v1_025_128")
        how: dict[str, Any] = {"labels": home / "labels.txt", "input_mean": 127.5, "input_std": 127.5}
        if name == "mobilenet":
            return home / "frozen_graph.pb", how
        file = folder / f"{name}.tflite"
        photos = {"samples": model_dir("data_flower_photos"), "limit": 10}
        export(home / "frozen_graph.pb", file, mode="static", io="uint8", **photos, **how)
        return file, {}
    if name in ("int8", "uint8"):
        pictures = np.random.default_rng(3).integers(0, 256, (20, 8, 8, 3)).astype(np.float32)
        file = folder / f"{name}.tflite"
        samples = {"pixels": (pictures - 127.5) / 64.0}
        export(parse(CLASSES), file, mode="static", io=name, samples=samples, **SCALED)
        return file, {}
    texts: dict[str, tuple[str, dict[str, Any]]] = {
        "classes": (CLASSES, {**SCALED, "name": TITLE}),
        "logits": (LOGITS, {"labels": LABELS, "input_mean": 127.5, "input_std": 127.5}),
        "gray": (GRAY, {"labels": LABELS}),
        "of_two": (OF_TWO, {"labels": ["no", "yes"], "input_mean": 120.0, "input_std": 64.0}),
        "names": (NAMES, {"name": '?names "x" it\'s'}),
    }
    text, how = texts[name]
    made = parse(text)
    if name == "names":
        taken = {'a "b" $c \\u ☘': "in/val.x-1:0", "is": "is:0"}
        made = made.replace(signatures={DEFAULT_SIGNATURE: Signature(taken, {key: f"{key}:0" for key in GIVEN})})
    return made, how


PICTURES = ("classes", "logits", "gray", "of_two", "int8", "uint8")
"""Models that take pictures."""
REAL = ("mobilenet", "mobilenet_uint8")


@dataclass
class Apps:
    """Projects, and their classes."""

    folder: pathlib.Path
    names: tuple[str, ...]
    printed: str

    def package(self, name: str) -> str:
        return f"com.example.{name}"

    def model(self, name: str) -> pathlib.Path:
        return self.folder / name / "app/src/main/assets/model.tflite"

    def ran(self, name: str, *pictures: pathlib.Path) -> list[str]:
        """What the app's own test says, and what its model makes of pictures, in lines."""
        home = self.folder / name / "app/src"
        words = [self.package(name), home / "main/assets", home / "androidTest/assets", *pictures]
        return java([self.folder / "run", self.folder / "classes", *KOTLIN_JARS, *JARS], "PhotoApp", words)


def java(places: Sequence[pathlib.Path], main: str, words: Sequence[object]) -> list[str]:
    """Runs a class of Java; gives what it prints."""
    settings = [f"-Dpython={sys.executable}", f"-Dlitert_process={STUBS / 'litert_process.py'}"]
    path = os.pathsep.join(map(str, places))
    ran = subprocess.run(
        ["java", "-Dstdout.encoding=UTF-8", "-Dfile.encoding=UTF-8", *settings, "-cp", path, main, *map(str, words)],
        capture_output=True, encoding="utf-8", timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()


def compiled(files: Sequence[pathlib.Path], to: pathlib.Path, *places: pathlib.Path, strict: bool = False) -> None:
    """Compiles Java; where that is strict, any warning is an error."""
    path = os.pathsep.join(map(str, [to, *places]))
    lint = ["-Xlint:all,-path,-classfile", "-Werror"] if strict else ["-Xlint:none"]
    words = ["javac", *lint, "-encoding", "UTF-8", "-d", to, "-cp", path, *files]
    made = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300)
    assert made.returncode == 0, made.stdout + made.stderr


def signatures(folder: pathlib.Path) -> list[pathlib.Path]:
    """A file for each class whose signatures are written down."""
    made = []
    for block in re.findall(
        r"^package .*?(?=\n\npackage |\Z)", (HERE / "android_signatures.txt").read_text(), re.S | re.M
    ):
        package = re.match(r"package ([\w.]+);", block)[1]  # type: ignore[index]
        name = re.search(r"^public (?:final |abstract )?(?:class|interface) (\w+)", block, re.M)[1]  # type: ignore[index]
        file = folder / package.replace(".", "/") / f"{name}.java"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block)
        made.append(file)
    return made


def resources(project: pathlib.Path, folder: pathlib.Path) -> list[pathlib.Path]:
    """Compiles and links what Android's build does: resources, the manifest with the namespace, and R.java."""
    folder.mkdir()
    namespace = re.search(r'namespace = "(.*)"', (project / "app/build.gradle.kts").read_text())[1]  # type: ignore[index]
    manifest = (project / "app/src/main/AndroidManifest.xml").read_text()
    (folder / "AndroidManifest.xml").write_text(manifest.replace("<manifest ", f'<manifest package="{namespace}" '))
    subprocess.run(
        ["aapt2", "compile", "--dir", project / "app/src/main/res", "-o", folder / "compiled.zip"], check=True
    )
    subprocess.run(
        ["aapt2", "link", "-I", ANDROID, "--manifest", folder / "AndroidManifest.xml", "--java", folder / "java",
         "--min-sdk-version", "24", "--target-sdk-version", "36", "-A", project / "app/src/main/assets", "-0", "tflite",
         "-o", folder / "app.apk", folder / "compiled.zip"],
        check=True,
    )  # fmt: skip
    return list(folder.rglob("R.java"))


@pytest.fixture(scope="session")
def apps(tmp_path_factory: pytest.TempPathFactory) -> Apps:
    """All projects, compiled at once."""
    folder = tmp_path_factory.mktemp("android")
    names = (*PICTURES, "names", *(REAL if shared() is not None else ()))
    made = Apps(folder, names, "")
    kotlin: list[pathlib.Path] = []
    written: dict[str, pathlib.Path] = {}
    found: list[pathlib.Path] = []
    for name in names:
        model, how = source_of(name, folder)
        make_project("android", model, folder / name, package=made.package(name), **how)
        kotlin += (folder / name / "app/src").rglob("*.kt")
        for file in (folder / name / "app/src").rglob("*.java"):  # those of org.tensorflow are the same in all
            written.setdefault(str(file.relative_to(folder / name / "app/src/main/java")), file)
        found += resources(folder / name, folder / f"resources_{name}")
    apis, classes, run = (folder / place for place in ("apis", "classes", "run"))
    stand_ins = [*(STUBS / "org").rglob("*.java"), *(STUBS / "androidx").rglob("*.java")]
    compiled([*signatures(folder / "signatures"), *stand_ins, *found], apis, ANDROID, *JARS, *KOTLIN_JARS)
    path = os.pathsep.join(map(str, [ANDROID, apis, *JARS, *KOTLIN_JARS]))
    words = ["bash", KOTLIN / "bin/kotlinc", "-no-stdlib", "-no-jdk", "-no-reflect", "-jvm-target", "17", "-Werror",
             "-Wextra", "-cp", path, "-d", classes, *kotlin, *written.values()]  # fmt: skip
    ran = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=900)
    made.printed = ran.stdout + ran.stderr
    assert ran.returncode == 0, made.printed
    compiled(list(written.values()), classes, ANDROID, apis, strict=True)
    compiled([STUBS / "PhotoApp.java", *(STUBS / "android").rglob("*.java"), *stand_ins], run, *JARS)
    return made


def picture(path: pathlib.Path, width: int, height: int, seed: int = 1) -> np.ndarray[Any, Any]:
    """A picture of smooth colours with some noise, written without loss."""
    rows, columns = np.mgrid[:height, :width]
    planes = [rows * 255 / height, columns * 255 / width, (rows + columns) * 255 / (height + width)]
    noise = np.random.default_rng(seed).normal(0, 8, (height, width, 3))
    pixels = np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


def best_and_numbers(lines: list[str]) -> tuple[list[tuple[int, str, float]], np.ndarray[Any, Any]]:
    """What the app shows of a picture, and its numbers."""
    assert lines[0] == "tests 1 failed 0", lines
    numbers = np.array(lines[1].split()[1:], np.float64)
    assert lines[2] == "the same by TensorFlowInferenceInterface: true"
    shown = [re.fullmatch(r"Recognition\(index=(\d+), title=(.*), score=(\S+)\)", line) for line in lines[3:]]
    return [(int(one[1]), one[2], float(one[3])) for one in shown if one is not None], numbers


@needs_compilers
def test_the_projects_compile_without_a_warning(apps: Apps) -> None:
    assert "warning" not in apps.printed
    for name in apps.names:
        assert list((apps.folder / "classes/com/example" / name).glob("TensorFlowInferenceInterface.class"))
        assert list((apps.folder / "classes/com/example" / name).glob("CameraActivity.class")) or name == "names"


@needs_compilers
@pytest.mark.parametrize(("name", "title"), [("classes", TITLE), ("names", '?names "x" it\'s'), ("gray", "Gray")])
def test_android_reads_the_title_that_was_given(name: str, title: str, apps: Apps) -> None:
    file = apps.folder / f"resources_{name}/app.apk"
    told = subprocess.run(["aapt2", "dump", "badging", file], capture_output=True, encoding="utf-8", check=True).stdout
    label = re.search("^application-label:'(.*)'$", told, re.M)
    assert label is not None
    assert re.sub(r"\\(.)", r"\1", label[1]) == title
    assert ("android.permission.CAMERA" in told) == (name != "names")


@needs_compilers
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_models_size_gives_what_the_product_gives(
    name: str, apps: Apps, tmp_path: pathlib.Path
) -> None:
    pixels = picture(tmp_path / "photo.png", 8, 8)
    shown, numbers = best_and_numbers(apps.ran(name, tmp_path / "photo.png"))
    model = PictureModel(load(apps.model(name)))
    (wanted,) = model.of_pixels(pixels)
    np.testing.assert_allclose(numbers, wanted.reshape(-1), rtol=2e-6, atol=1e-7)
    labels = ["no", "yes"] if name == "of_two" else []
    (expected,) = label_image(apps.model(name), pixels, labels, top=3)
    least = -np.inf if name == "logits" else 0.1
    kept = [one for one in expected.predictions if one.score > least]
    assert [(one.index, one.label) for one in kept] == [(index, title) for index, title, _ in shown]
    np.testing.assert_allclose([one.score for one in kept], [score for *_, score in shown], rtol=1e-5)


@needs_compilers
def test_of_a_wide_picture_the_middle_square_is_fed(apps: Apps, tmp_path: pathlib.Path) -> None:
    pixels = picture(tmp_path / "photo.png", 40, 24)
    _, numbers = best_and_numbers(apps.ran("classes", tmp_path / "photo.png"))
    square = pixels[:, 8:32].reshape(8, 3, 8, 3, 3)[:, 1, :, 1]  # a third: the middle one of three pixels each way
    (wanted,) = PictureModel(load(apps.model("classes"))).of_pixels(np.ascontiguousarray(square))
    np.testing.assert_allclose(numbers, wanted.reshape(-1), rtol=2e-6, atol=1e-7)


@needs_compilers
@pytest.mark.parametrize("name", REAL)
def test_photos_have_the_labels_that_the_product_gives(name: str, apps: Apps, tmp_path: pathlib.Path) -> None:
    if name not in apps.names:
        pytest.skip("the shared models are not here")
    photos = sorted(model_dir("data_tf_images").rglob("*.jpg")) + sorted(model_dir("data_flower_photos").rglob("*.jpg"))
    model = PictureModel(load(apps.model(name)))
    for place, photo in enumerate(photos[:4]):
        opened = Image.open(photo).convert("RGB")
        side = min(opened.size)
        corner = ((opened.width - side) // 2, (opened.height - side) // 2)
        square = opened.crop((*corner, corner[0] + side, corner[1] + side)).resize(
            (128, 128), Image.Resampling.BILINEAR
        )
        file = tmp_path / f"{place}.png"
        square.save(file)
        shown, numbers = best_and_numbers(apps.ran(name, file))
        (wanted,) = model.of_pixels(np.asarray(square))
        np.testing.assert_allclose(numbers, wanted.reshape(-1), rtol=1e-5, atol=1e-6)
        (expected,) = label_image(apps.model(name), np.asarray(square), top=3)
        kept = [(one.index, one.label) for one in expected.predictions if one.score > 0.1]
        assert kept == [(index, title) for index, title, _ in shown]


@needs_compilers
def test_names_of_any_kind_and_other_types_run(apps: Apps) -> None:
    assert apps.ran("names") == ["tests 1 failed 0"]


@pytest.mark.skipif(shutil.which("javac") is None, reason="there is no Java compiler")
def test_the_class_for_old_apps_compiles_and_behaves(tmp_path: pathlib.Path) -> None:
    """Over LiteRT itself, with stand-ins for Android's classes."""
    made = parse(OLD)
    main = Signature({"x": "x:0", "k": "k:0"}, {"y": "scope/y:0", "n": "count:0"})
    save(made.replace(signatures={DEFAULT_SIGNATURE: main}), tmp_path / "saved", form="saved_model")
    (tmp_path / "assets").mkdir()
    export(tmp_path / "saved", tmp_path / "assets/model.tflite")
    make_project("android", tmp_path / "saved", tmp_path / "out", package="com.example.old")
    classes = tmp_path / "classes"
    compiled([*(STUBS / "android").rglob("*.java"), *(STUBS / "org").rglob("*.java")], classes)
    compiled([*(tmp_path / "out/app/src/main/java").rglob("*.java"), STUBS / "OldApp.java"], classes, strict=True)
    assert java([classes], "OldApp", [tmp_path / "assets"]) == ["passed"]
