"""The commands of docs/eight-bit-guide.md, one after the other, on a real model and real photos."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from pocketgraph import Session, formats
from support import ROOT, model_dir, needs_shared

GUIDE = ROOT / "docs" / "eight-bit-guide.md"
PHOTOS = 6


def commands() -> list[str]:
    """The guide's shell blocks."""
    return re.findall(r"^```sh\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


@needs_shared
def test_the_guide_works_command_by_command(tmp_path: Path) -> None:
    shutil.copy(model_dir("mobilenet_v1_025_128") / "frozen_graph.pb", tmp_path / "graph.pb")
    shutil.copy(model_dir("mobilenet_v1_025_128") / "labels.txt", tmp_path / "labels.txt")
    photos = sorted(model_dir("data_flower_photos").glob("*/*.jpg"))[:: 400 // PHOTOS]
    (tmp_path / "photos").mkdir()
    for index, photo in enumerate(photos[:PHOTOS]):
        shutil.copy(photo, tmp_path / "photos" / f"{index}.jpg")
    shutil.copy(photos[PHOTOS], tmp_path / "test.jpg")
    script = 'set -e\npocketgraph() { "$PYTHON" -m pocketgraph "$@"; }\n' + "\n".join(commands())
    environment = {
        **os.environ,
        "PYTHON": sys.executable,
        "POCKETGRAPH_CACHE": str(tmp_path / "cache"),
        "INPUT": "input",
        "OUTPUT": "MobilenetV1/Predictions/Reshape_1",
    }
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
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
