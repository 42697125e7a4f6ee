"""What ``ship`` proposes to type next: each line runs as it is printed, and agrees with what ship said."""

from __future__ import annotations

import filecmp
import json
import pathlib
import re
import shlex
import subprocess
import sys
import wave

import numpy as np
import pytest

import pocketgraph
from command_line import call
from pocketgraph.apps.live.application_choice import chosen
from pocketgraph.apps.projects import make_project
from pocketgraph.apps.shipping.ship import ship
from pocketgraph.apps.shipping.shipment import TARGETS
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session

PICTURES = """
    x = Placeholder(dtype=float, shape=[1,8,8,3])
    c = Conv2D(x, w, strides=[1,1,1,1], padding="SAME", T=float)
    axes = Const(int32 [1, 2])
    mean = Mean(c, axes, T=float, Tidx=int32)
    scores = Softmax(mean, T=float)
"""
NUMBERS = """
    ids = Placeholder(dtype=int64, shape=[1,4])
    floats = Cast(ids, SrcT=int64, DstT=float)
    y = MatMul(floats, w, T=float)
"""
SOUND = """
    wav = Placeholder(dtype=string, shape=[])
    samples = DecodeWav(wav, desired_channels=1, desired_samples=4000)
    spectrum = AudioSpectrogram(samples:0, window_size=480, stride=320, magnitude_squared=true)
    mfcc = Mfcc(spectrum, samples:1, dct_coefficient_count=10)
    flat_size = Const(int32 [1, 120])
    flat = Reshape(mfcc, flat_size, T=float, Tshape=int32)
    logits = MatMul(flat, w, T=float)
    labels_softmax = Softmax(logits, T=float)
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that are run as proposed write where they are called."""
    monkeypatch.chdir(tmp_path)


def saved(text: str, *sizes: int) -> str:
    weights = np.random.default_rng(3).normal(size=sizes).astype(np.float32)
    pocketgraph.save(Graph([*parse(text), const("w", weights)]), "net.pb")
    return "net.pb"


def runs(command: str) -> int:
    _, *words = shlex.split(command)
    return call(*words, *(["--num_runs=1"] if words[0] == "benchmark_model" else []))


@pytest.mark.parametrize("target", TARGETS)
def test_each_target_that_has_an_app_gets_its_command(target: str) -> None:
    found = ship(saved(PICTURES, 3, 3, 3, 5), "of mine/out", target=target)
    apps = [line for line in found.commands if line.startswith("pocketgraph app ")]
    assert len(apps) == (target != "microcontroller")
    for command in found.commands:
        assert runs(command) == 0, command
    assert pathlib.Path(f"of mine/out_{target}/README.md").is_file() == (target != "microcontroller")


def test_a_page_of_int64_is_made_of_the_graph() -> None:
    """LiteRT.js feeds none, so that the page's file has int32."""
    found = ship(saved(NUMBERS, 4, 3), ".", target="web")
    assert found.commands[-1] == "pocketgraph app web ./frozen.pb -o app_web --outputs=y"
    assert runs(found.commands[-1]) == 0


def write_recordings(folder: pathlib.Path) -> None:
    rng = np.random.default_rng(5)
    for name in ("one", "two"):
        (folder / name).mkdir(parents=True)
        for number in range(3):
            with wave.open(str(folder / name / f"{number}.wav"), "wb") as file:
                file.setparams((1, 2, 16000, 4000, "NONE", ""))
                file.writeframes(rng.integers(-9000, 9000, 4000).astype("<i2").tobytes())


@pytest.mark.usefixtures("eight_bits_are_faster")
def test_an_app_that_hears_is_made_of_the_file_beside_its_graph(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file, in eight bits, begins behind the spectrogram; the graph tells the app what to do in front of it."""
    write_recordings(tmp_path / "wavs")
    pathlib.Path("labels.txt").write_text("one\ntwo\n")
    found = ship(saved(SOUND, 120, 2), "out", data="wavs", labels="labels.txt", target="pi")
    for command in found.commands:
        assert runs(command) == 0, command
    assert "written: out_pi, a program that takes recordings, " in capsys.readouterr().out
    assert pathlib.Path("out_pi/labels.txt").read_text() == "one\ntwo\n"
    assert found.commands[-1].startswith("pocketgraph app pi out/model.tflite ")
    assert filecmp.cmp("out_pi/model.tflite", "out/model.tflite", shallow=False)
    with Session("out/frozen.pb") as session:
        content = pathlib.Path("wavs/one/0.wav").read_bytes()
        (wanted,) = session.run(["labels_softmax"], {"wav": content})
    words = [sys.executable, "main.py", "--recording=../wavs/one/0.wav"]
    said = subprocess.run(words, cwd="out_pi", capture_output=True, text=True, check=True, timeout=300).stdout
    shares = {label: float(share) for label, share in re.findall(r"(\w+) \(\d\): ([\d.]+)", said)}
    assert list(shares) == ["one", "two"] if wanted.argmax() == 0 else ["two", "one"]
    assert [shares["one"], shares["two"]] == pytest.approx(wanted.reshape(-1).tolist(), abs=0.1)
    make_project("web", "out/model.tflite", "page")
    told = json.loads(pathlib.Path("page/public/model.json").read_text())
    assert (told["kind"], [step["op"] for step in told["front"]]) == ("speech", ["AudioSpectrogram", "Mfcc"])
    saved(PICTURES, 3, 3, 3, 5)
    pathlib.Path("net.pb").replace("out/frozen.pb")
    make_project("pi", "out/model.tflite", "silent")
    assert not (tmp_path / "silent" / "sound.py").exists()  # that graph is of another model


def test_a_file_that_was_made_with_recordings_is_known_to_hear(tmp_path: pathlib.Path) -> None:
    """Long rows may be measurements; those of recordings are not."""
    write_recordings(tmp_path / "wavs")
    row = "x = Placeholder(dtype=float, shape=[1,4000])\nlogits = MatMul(x, w, T=float)\ny = Softmax(logits, T=float)"
    found = ship(saved(row, 4000, 2), "out", data="wavs", sample_rate=8000, target="pi")
    assert runs(found.commands[-1]) == 0
    assert json.loads(pathlib.Path("out_pi/model.json").read_text())["sound"]["rate"] == 8000
    ship("net.pb", "usual", data="wavs")
    about = metadata(pocketgraph.load("usual/model.tflite").extra)
    assert about is not None
    assert about.sample_rate == 16000
    assert chosen(pocketgraph.load("usual/model.tflite"))[0] == "speech"
    make_project("web", "usual/model.tflite", "page")
    told = json.loads(pathlib.Path("page/public/model.json").read_text())
    assert (told["kind"], told["rate"], told["samples"]) == ("speech", 16000, 4000)


def test_what_was_judged_on_data_is_judged_so_again(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By answers, on the same samples: another measure can say another thing."""
    rng = np.random.default_rng(7)
    np.savez("data.npz", x=rng.normal(size=(30, 8, 8, 3)).astype(np.float32))
    found = ship(saved(PICTURES, 3, 3, 3, 5), "out", data="data.npz", input_mean=0, input_std=2)
    proof = found.commands[0]
    assert proof.startswith("pocketgraph evaluate out/frozen.pb out/model.tflite --data=data.npz --input_mean=0")
    assert proof.endswith("--input_std=2 --skip=18 --limit=12 --outputs=scores")
    assert runs(proof) == 0
    assert "12 samples" in capsys.readouterr().out
