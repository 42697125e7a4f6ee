"""A detector that selects its boxes itself: the error says where to cut, and the cut runs."""

import pathlib
import re

import numpy as np
import pytest

from command_line import call
from pocketgraph.formats import save
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse


def test_the_hint_names_the_heads(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,4,4,3])
        place = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")
        place_bias = BiasAdd(place, b, T=float)
        score = Conv2D(x, v, T=float, strides=[1,1,1,1], padding="SAME")
        score_bias = BiasAdd(score, c, T=float)
        rows = Const(int32 [16, 4])
        boxes = Reshape(place_bias, rows, T=float, Tshape=int32)
        row = Const(int32 [16])
        flat = Reshape(score_bias, row, T=float, Tshape=int32)
        likely = Sigmoid(flat, T=float)
        most = Const(int32 5)
        overlap = Const(float 0.5)
        least = Const(float 0.1)
        chosen = NonMaxSuppressionV3(boxes, likely, most, overlap, least, T=float)
        axis = Const(int32 0)
        detection_boxes = GatherV2(boxes, chosen, axis, Tparams=float, Tindices=int32, Taxis=int32)
    """)
    rng = np.random.default_rng(0)
    shapes = {"w": (1, 1, 3, 4), "b": (4,), "v": (1, 1, 3, 1), "c": (1,)}
    weights = [const(name, rng.normal(size=shape).astype(np.float32)) for name, shape in shapes.items()]
    save(Graph([*graph, *weights]), tmp_path / "net.pb")
    assert call("export", tmp_path / "net.pb", "-o", tmp_path / "net.tflite") == 1
    told = capsys.readouterr().err
    found = re.search(r"--outputs=\S+", told)
    assert found is not None
    assert found.group() == "--outputs=boxes,likely"
    assert call("export", tmp_path / "net.pb", "-o", tmp_path / "net.tflite", found.group()) == 0
