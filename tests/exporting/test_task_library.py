"""Our .tflite files in MediaPipe's task library (POCKETGRAPH_MEDIAPIPE names a Python that has it): labels are ours."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from pocketgraph.datasets.image_loading import resize_bilinear
from pocketgraph.graph.model_file_graph import coded, numbers
from pocketgraph.runtime import Session
from support import model_dir, needs_shared

PYTHON = os.environ.get("POCKETGRAPH_MEDIAPIPE", sys.executable if find_spec("mediapipe") else "")
SIDE = 128
LEAST_LEAD = 0.05
"""Of the best score, by which a label does not hang on the last bit of a pixel."""
PHOTOS = ("burger", "cat", "sparrow", "cats_and_dogs", "multi_objects")
CLASSIFY = """
import json, sys
import mediapipe as mp
from mediapipe.tasks.python import BaseOptions, vision
options = vision.ImageClassifierOptions(base_options=BaseOptions(model_asset_path=sys.argv[1]), max_results=1)
with vision.ImageClassifier.create_from_options(options) as classifier:
    found = [classifier.classify(mp.Image.create_from_file(path)).classifications[0] for path in sys.argv[2:]]
best = [item.categories[0] for item in found]
print(json.dumps([[item.index, item.category_name, item.score] for item in best]))
"""


def answers(file: pathlib.Path, pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What our session gives for the pixels of a picture."""
    with Session(file, threads=1) as session:
        (signature,) = session.graph.signatures.values()
        (fed,), (wanted,) = signature.inputs.values(), signature.outputs.values()
        given = coded(session.graph, fed, ((pixels - 127.5) / 127.5).astype(np.float32)[None])
        if given.dtype == np.uint8:  # the bytes of a picture, as they are
            given = pixels.astype(np.uint8)[None]
        (result,) = session.run([wanted], {fed: given})
        return numbers(session.graph, wanted, result)[0]


@needs_shared
@pytest.mark.skipif(not PYTHON, reason="MediaPipe is not here (set POCKETGRAPH_MEDIAPIPE to a Python that has it)")
@pytest.mark.parametrize(
    "how",
    [{"mode": "float32"}, {"mode": "static"}, {"mode": "static", "io": "uint8"}],
    ids=["float32", "int8", "uint8"],
)
def test_labels_and_scores_are_ours(how: dict[str, Any], tmp_path: pathlib.Path) -> None:
    model, photos = model_dir("mobilenet_v1_025_128"), model_dir("data_tflite_support_images")
    labels = (model / "labels.txt").read_text().splitlines()
    file = tmp_path / "model.tflite"
    pocketgraph.export(
        model / "frozen_graph.pb", file, **how, labels=labels, preset="mobilenet", samples=photos, limit=4
    )
    whole, small, wanted = [], [], []
    for name in PHOTOS:
        whole.append(str(photos / f"{name}.jpg"))
        pixels = np.asarray(Image.open(whole[-1]).convert("RGB"), np.float32)
        resized = np.rint(resize_bilinear(pixels, SIDE, SIDE))
        small.append(str(tmp_path / f"{name}.png"))
        Image.fromarray(resized.astype(np.uint8)).save(small[-1])
        wanted.append(answers(file, resized))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [PYTHON, "-c", CLASSIFY, str(file), *small, *whole]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    clear = 0
    for place, scores in enumerate(wanted):
        index, label, score = found[place]  # of a picture that needs no resizing
        assert (index, label) == (scores.argmax(), labels[index])
        assert score == pytest.approx(scores.max(), abs=1e-5)
        index, label, score = found[place + len(small)]  # of the photo, which MediaPipe resizes as TensorFlow 1 does
        second, first = np.sort(scores)[-2:]
        if first - second > LEAST_LEAD:
            clear += 1
            assert (index, label) == (scores.argmax(), labels[index])
            assert score == pytest.approx(first, abs=LEAST_LEAD)
    assert clear >= 2
