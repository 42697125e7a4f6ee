"""The commands of docs/eight-bit-guide.md, one after the other, on a real model and real photos."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np

from pocketgraph import Session, formats
from support import ROOT, model_dir, needs_shared

GUIDE = ROOT / "docs" / "eight-bit-guide.md"
PHOTOS = 6


def run_section(title: str, folder: Path, names: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs the shell blocks of a section of the guide, one after the other."""
    _, _, rest = GUIDE.read_text().partition(f"\n## {title}\n")
    section = rest.partition("\n## ")[0]
    commands = re.findall(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert commands
    script = 'set -e\npocketgraph() { "$PYTHON" -m pocketgraph "$@"; }\n' + "\n".join(commands)
    for shown, name in names.items():
        script = script.replace(shown, name)
    known = {**os.environ, "PYTHON": sys.executable, "POCKETGRAPH_CACHE": str(folder / "cache")}
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=known, capture_output=True, text=True, timeout=300, check=False
    )


@needs_shared
def test_the_guide_works_command_by_command_with_pictures(tmp_path: Path) -> None:
    shutil.copy(model_dir("mobilenet_v1_025_128") / "frozen_graph.pb", tmp_path / "graph.pb")
    shutil.copy(model_dir("mobilenet_v1_025_128") / "labels.txt", tmp_path / "labels.txt")
    photos = sorted(model_dir("data_flower_photos").glob("*/*.jpg"))[:: 400 // PHOTOS]
    (tmp_path / "photos" / "some").mkdir(parents=True)
    for index, photo in enumerate(photos[:PHOTOS]):
        shutil.copy(photo, tmp_path / "photos" / "some" / f"{index}.jpg")
    shutil.copy(photos[PHOTOS], tmp_path / "test.jpg")
    names = {"--inputs=x ": "--inputs=input ", "--outputs=softmax ": "--outputs=MobilenetV1/Predictions/Reshape_1 "}
    done = run_section("With pictures", tmp_path, names)
    assert done.returncode == 0, done.stderr
    eight, frozen = (formats.load(tmp_path / name) for name in ("eightbit.pb", "frozen.pb"))
    ranges = sum(node.op == "RequantizationRange" for node in eight)
    assert ranges > 30
    assert not any(node.op in ("RequantizationRange", "Print") for node in frozen)
    lines = [line for line in (tmp_path / "ranges.log").read_text().splitlines() if "__requant_min_max:" in line]
    assert len(lines) == ranges * PHOTOS
    assert all(re.fullmatch(r";.+__print__;__requant_min_max:\[[-+.e\d]+\]\[[-+.e\d]+\]", line) for line in lines)
    assert done.stdout.count("): 0.") + done.stdout.count("): 1") >= 2 * 5  # five labels of each trial
    with Session(frozen, cache_dir=tmp_path / "cache") as session:
        image = np.zeros((1, 128, 128, 3), np.float32)
        plan = session.plan("MobilenetV1/Predictions/Reshape_1", {"input": image})
        assert [part.runs_on for part in plan.parts] == ["litert"]


def tone(path: Path, pitch: float) -> None:
    """A second of a tone that swells, at 16 kHz."""
    time = np.arange(16000) / 16000
    samples = 8000 * np.sin(2 * np.pi * pitch * time) * np.sin(np.pi * time) ** 2
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(samples.astype("<i2").tobytes())


@needs_shared
def test_the_guide_works_command_by_command_with_recordings(tmp_path: Path) -> None:
    shutil.copy(model_dir("kws_ds_cnn_s") / "DS_CNN_S.pb", tmp_path / "speech.pb")
    for word in ("yes", "no"):
        (tmp_path / "words" / word).mkdir(parents=True)
        shutil.copy(model_dir("data_speech_wavs") / f"{word}_1000ms.wav", tmp_path / "words" / word)
        for number in range(6):
            tone(tmp_path / "words" / word / f"{number}.wav", 200 + 90 * number + 40 * (word == "no"))
    done = run_section("The same with recordings", tmp_path, {})
    assert done.returncode == 0, done.stderr
    eight, frozen = (formats.load(tmp_path / name) for name in ("speech8.pb", "speech_frozen.pb"))
    ranges = sum(node.op == "RequantizationRange" for node in eight)
    assert ranges > 10
    assert not any(node.op in ("RequantizationRange", "Print") for node in frozen)
    logs = [(tmp_path / name).read_text().count("__requant_min_max:") for name in ("first.log", "second.log")]
    assert logs == [10 * ranges, 4 * ranges]
    table = done.stdout.splitlines()
    assert [line.split()[0] for line in table[-3:]] == ["speech.pb", "speech8.pb", "speech_frozen.pb"]
