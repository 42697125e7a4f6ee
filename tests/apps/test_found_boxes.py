"""What a detector finds in photos is on the page about a shipment; where boxes are is judged as numbers."""

from __future__ import annotations

import base64
import io
import pathlib
import re

import numpy as np
import pytest
from PIL import Image

from pocketgraph import Session, save
from pocketgraph.apps.live.detection import class_counts
from pocketgraph.apps.live.drawing import COLOURS
from pocketgraph.apps.shipping.found_boxes import box_heads
from pocketgraph.apps.shipping.ship import ship
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.class_names import labels_beside_detector

SELECTED = """
    x = Placeholder(dtype=float, shape=[1,4,4,3])
    box_layer = Conv2D(x, box_weights, T=float, strides=[1, 1, 1, 1], padding="VALID")
    box_head = BiasAdd(box_layer, box_biases, T=float)
    score_layer = Conv2D(x, score_weights, T=float, strides=[1, 1, 1, 1], padding="VALID")
    score_head = BiasAdd(score_layer, score_biases, T=float)
    rows = Const(int32 [1, 4])
    codes = Reshape(box_head, rows, T=float, Tshape=int32)
    flat_shape = Const(int32 [1])
    flat = Reshape(score_head, flat_shape, T=float, Tshape=int32)
    likely = Sigmoid(flat, T=float)
    most = Const(int32 2)
    overlap = Const(float 0.5)
    least = Const(float 0.1)
    chosen = NonMaxSuppressionV3(codes, likely, most, overlap, least, T=float)
    axis = Const(int32 0)
    boxes = GatherV2(codes, chosen, axis, Tparams=float, Tindices=int32, Taxis=int32)
    scores = GatherV2(likely, chosen, axis, Tparams=float, Tindices=int32, Taxis=int32)
"""
SIDES = [0.25, 0.375, 0.75, 0.875]  # top, left, bottom, right


def detector(moved: float = 0.0) -> Graph:
    """Finds one box, in the same place but for what the photo moves; the brighter the photo, the surer."""
    weights = {
        "box_weights": moved * np.random.default_rng(0).normal(size=(4, 4, 3, 4)), "box_biases": np.array(SIDES),
        "score_weights": np.full((4, 4, 3, 1), 1 / 16), "score_biases": np.zeros(1),
    }  # fmt: skip
    return Graph([*(const(name, value.astype(np.float32)) for name, value in weights.items()), *parse(SELECTED)])


@pytest.fixture
def photos(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for at in range(20):
        Image.fromarray(np.full((64, 64, 3), 130 + 6 * at, np.uint8)).save(folder / f"{at:02}.png")
    return folder


def test_boxes_are_drawn_on_photos_as_the_graph_and_as_the_file_finds_them(
    photos: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    save(detector(), tmp_path / "model.pb")
    told = ship(tmp_path / "model.pb", tmp_path / "out", photos, outputs=["boxes", "scores"],
                input_mean=0.0, input_std=255.0)  # fmt: skip
    page = (tmp_path / "out" / "ship.html").read_text("utf-8")
    assert "What it finds in photos of the data" in page
    shown = re.findall(r'<img alt="([^"]*)" src="data:image/jpeg;base64,([^"]*)"', page)
    assert [alt.rpartition(", ")[2] for alt, _ in shown] == ["frozen.pb", "model.tflite"] * 2
    names = [pathlib.Path(alt.rpartition(", ")[0]).name for alt, _ in shown]
    assert names == ["12.png", "12.png", "13.png", "13.png"]  # the first 12 calibrated
    said = re.findall(r"(frozen.pb|model.tflite): 1 box: ([\d.]+)", page)
    assert len(said) == len(shown)
    for name, (_, score) in zip(names, said, strict=True):
        sum_of_pixels = 3 * np.float32(130 + 6 * int(name[:2])) / 255
        assert float(score) == pytest.approx(1 / (1 + np.exp(-sum_of_pixels)), abs=0.02)
    for _, content in shown:
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(content)))).astype(int)
        middle, left = len(pixels) // 2, round(SIDES[1] * pixels.shape[1])
        assert np.abs(pixels[middle, left] - COLOURS[0]).max() < 60
        assert np.ptp(pixels[middle, left + 20]) < 20  # gray inside
    assert not any("forecasts" in line for line in told.unknown)


def test_where_boxes_are_is_judged_by_signal_to_noise(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    graph = detector(moved=0.01)
    assert box_heads(graph, ["boxes", "scores"], ["codes", "likely"]) == {"codes"}
    assert box_heads(graph, ["codes", "likely"], ["codes", "likely"]) == set()
    save(graph, tmp_path / "model.pb")
    told = ship(tmp_path / "model.pb", tmp_path / "out", photos, outputs=["boxes", "scores"])
    assert "signal to noise" in told.tried[-1].words.partition(";")[0]


def test_a_detector_whose_boxes_nobody_knows_says_so(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """As MultiBox, whose priors are in a file of its own."""
    names = {"boxes": "output_locations/Reshape", "scores": "output_scores/Reshape"}
    graph = detector()
    kept = {"codes": names["boxes"], "likely": names["scores"]}
    nodes = [node for node in graph if node.name not in ("chosen", "boxes", "scores")]
    renamed = [node.replace(name=kept.get(node.name, node.name)) for node in nodes]
    save(Graph(renamed), tmp_path / "model.pb")
    told = ship(tmp_path / "model.pb", tmp_path / "out", photos, outputs=list(names.values()))
    assert any("which boxes it finds in photos" in line and "priors" in line for line in told.unknown)
    assert "<img" not in (tmp_path / "out" / "ship.html").read_text("utf-8")


def test_the_rest_of_a_detector_takes_what_the_file_gives() -> None:
    """A tensor that is fed in the place of what computes it."""
    with Session(detector()) as session:
        given = {"codes": np.array([SIDES], np.float32), "likely": np.array([0.75], np.float32)}
        boxes, scores = session.run(["boxes", "scores"], given)
    np.testing.assert_array_equal(boxes, given["codes"])
    np.testing.assert_array_equal(scores, given["likely"])


def ssd() -> Graph:
    """A detector with the outputs of the Object Detection API: a box of class 2, the surer the brighter the photo."""
    outputs = """
        kind = Const(float [[2]])
        one = Const(float [1])
        flat_boxes = Const(int32 [1, 1, 4])
        detection_boxes = Reshape(boxes, flat_boxes, T=float, Tshape=int32)
        flat_scores = Const(int32 [1, 1])
        detection_scores = Reshape(scores, flat_scores, T=float, Tshape=int32)
        detection_classes = Identity(kind, T=float)
        num_detections = Identity(one, T=float)
    """
    return Graph([*detector(), *parse(outputs)])


@pytest.mark.parametrize("is_named", [True, False])
def test_a_label_map_names_boxes_and_is_in_labels_txt(
    is_named: bool, photos: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Beside the model, or named by the caller, who may have it in UTF-16."""
    text = "item { id: 1 name: 'ant' }\nitem { id: 2 name: 'bée' }\n"
    place = tmp_path / ("called.pbtxt" if is_named else "label_map.pbtxt")
    place.write_text(text, "utf-16" if is_named else "utf-8")
    save(ssd(), tmp_path / "model.pb")
    parts = ("boxes", "scores", "classes")
    ship(tmp_path / "model.pb", tmp_path / "out", photos, outputs=[f"detection_{part}" for part in parts],
         labels=place if is_named else None, input_mean=0.0, input_std=255.0)  # fmt: skip
    assert (tmp_path / "out" / "labels.txt").read_text("utf-8") == "???\nant\nbée\n"
    assert re.search(r"model.tflite: 1 box: bée 0\.\d+", (tmp_path / "out" / "ship.html").read_text("utf-8"))


@pytest.mark.parametrize(("lines", "is_taken"), [(2, True), (3, True), (5, False)])
def test_a_file_of_another_number_of_classes_is_not_a_detectors_and_that_is_said(
    lines: int, is_taken: bool, tmp_path: pathlib.Path
) -> None:
    """Scores of three classes, or of two and the background."""
    (tmp_path / "labels.txt").write_text("".join(f"class{at}\n" for at in range(lines)))
    told: list[str] = []
    graph = parse("""
        x = Placeholder(dtype=float, shape=[8,3])
        biases = Const(float [0.1, 0.2, 0.3])
        head = BiasAdd(x, biases, T=float)
        zeros = Const(int32 [0, 1])
        ones = Const(int32 [8, 1])
        first = Slice(head, zeros, ones, T=float, Index=int32)
        flat = Const(int32 [8])
        likely = Reshape(first, flat, T=float, Tshape=int32)
        places = Placeholder(dtype=float, shape=[8,4])
        most = Const(int32 2)
        overlap = Const(float 0.5)
        chosen = NonMaxSuppressionV2(places, likely, most, overlap, T=float)
    """)
    assert class_counts(graph) == {2, 3}
    names = labels_beside_detector(tmp_path / "net.pb", graph, class_counts(graph), told.append)
    assert len(names) == (lines if is_taken else 0)
    assert told == [
        f"'{tmp_path / 'labels.txt'}' " + (
            "names the classes; labels takes another file" if is_taken
            else "names 5 classes, not 2 or 3, so it is not this model's and not taken"
        )
    ]  # fmt: skip


def test_a_file_with_a_line_for_each_side_of_a_box_names_no_classes(
    photos: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Sides that a Sigmoid gives look like scores of four classes; the model has three."""
    text = SELECTED.replace("codes = Reshape(box_head", "sides = Reshape(box_head").replace(
        "    flat_shape = Const(int32 [1])\n    flat = Reshape(score_head, flat_shape, T=float, Tshape=int32)\n"
        "    likely = Sigmoid(flat, T=float)",
        "    codes = Sigmoid(sides, T=float)\n    row = Const(int32 [1, 3])\n    last = Const(int32 1)\n"
        "    each = Reshape(score_head, row, T=float, Tshape=int32)\n    shares = Sigmoid(each, T=float)\n"
        "    likely = Max(shares, last, T=float, Tidx=int32, keep_dims=false)",
    )
    weights = {"box_weights": (4, 4, 3, 4), "box_biases": 4, "score_weights": (4, 4, 3, 3), "score_biases": 3}
    rng = np.random.default_rng(0)
    constants = [const(name, rng.normal(size=size).astype(np.float32)) for name, size in weights.items()]
    save(Graph([*constants, *parse(text)]), tmp_path / "net.pb")
    (tmp_path / "labels.txt").write_text("a\nb\nc\nd\n")
    told: list[str] = []
    ship(tmp_path / "net.pb", tmp_path / "out", photos, outputs=["boxes", "scores"], input_mean=0.0, input_std=255.0,
         notify=told.append)  # fmt: skip
    assert [line for line in told if "labels.txt" in line] == [
        f"'{tmp_path / 'labels.txt'}' names 4 classes, not 2 or 3, so it is not this model's and not taken"
    ]
    assert not (tmp_path / "out" / "labels.txt").exists()
