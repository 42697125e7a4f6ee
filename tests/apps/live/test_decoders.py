"""Outputs of detectors made by hand from boxes that are known, read back."""

import numpy as np
import pytest

from pocketgraph.apps.detections import Detection, overlaps, without_overlaps
from pocketgraph.apps.live.anchors import multibox_priors, ssd_anchors
from pocketgraph.apps.live.answers import Frame
from pocketgraph.apps.live.decoders import (
    YOLO_ANCHORS,
    Reading,
    detection_api,
    faces,
    heat_maps,
    multibox,
    postprocessed,
    selected,
    ssd,
    yolo,
)
from pocketgraph.apps.live.detection import DetectionApp, recognised
from pocketgraph.errors import FormatError
from pocketgraph.formats import tflite
from pocketgraph.graph import Signature
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.serialization.tflite_bytes import model_bytes

BOX = (0.2, 0.3, 0.6, 0.7)


def logit(p: float) -> float:
    return float(np.log(p / (1 - p)))


def near(found: Detection, box: tuple[float, ...] = BOX, score: float = 0.9) -> None:
    np.testing.assert_allclose(found.box, box, atol=1e-6)
    assert found.score == pytest.approx(score, abs=1e-6)


def test_overlaps_are_shares_of_the_union() -> None:
    found = overlaps(np.array([[0, 0, 1, 1], [0, 0, 0, 0]]), np.array([[0, 0.5, 1, 1.5], [2, 2, 3, 3]]))
    np.testing.assert_allclose(found, [[1 / 3, 0], [0, 0]])


def test_the_best_of_overlapping_boxes_of_a_class_stays() -> None:
    moved = (0.21, 0.31, 0.61, 0.71)
    found = [Detection(BOX, 0.7, "cat"), Detection(moved, 0.9, "cat"), Detection(moved, 0.8, "dog")]
    assert [(d.label, d.score) for d in without_overlaps(found, 0.5)] == [("cat", 0.9), ("dog", 0.8)]


@pytest.mark.parametrize(("labels", "name"), [(["cat", "dog"], "dog"), (["???", "cat", "dog"], "dog"), ([], "class 2")])
def test_detection_api_counts_classes_from_one(labels: list[str], name: str) -> None:
    outputs = {"boxes": np.array([[BOX, BOX]]), "scores": np.array([[0.9, 0.2]]), "classes": np.array([[2.0, 1.0]])}
    (found,) = detection_api({**outputs, "count": np.array([2.0])}, Reading(labels))
    near(found)
    assert found.label == name


def test_postprocessed_classes_count_from_zero() -> None:
    outputs = {"boxes": np.array([[BOX]]), "scores": np.array([[0.9]]), "classes": np.array([[1.0]])}
    assert postprocessed(outputs, Reading(["cat", "dog"]))[0].label == "dog"
    assert postprocessed(outputs, Reading(["???", "cat", "dog"]))[0].label == "dog"


def test_multibox_is_linear_around_its_priors(tmp_path: object) -> None:
    priors = np.array([[[0.1, 0.1], [0.1, 0.2], [0.9, 0.1], [0.9, 0.2]]])  # left, top, right, bottom: mean, deviation
    sides = np.array([0.3, 0.2, 0.7, 0.6])
    coded = (sides - priors[0, :, 0]) / priors[0, :, 1]
    (found,) = multibox({"boxes": coded, "scores": np.array([[logit(0.9)]])}, Reading(least=0.1, anchors=priors))
    near(found)


def test_priors_have_eight_numbers_a_box(tmp_path: object) -> None:
    place = f"{tmp_path}/priors.txt"
    with open(place, "w", encoding="utf-8") as file:
        file.write("0.1 0.2, 0.3\n0.4 ,x, 0.5 0.6 0.7 0.8")
    np.testing.assert_allclose(multibox_priors(place, 1).reshape(-1), np.arange(1, 9) / 10)
    with pytest.raises(FormatError, match="BoxPrior length mismatch: 8 vs 16"):
        multibox_priors(place, 2)


def test_ssd_offsets_are_from_anchors() -> None:
    anchors = ssd_anchors(1917, 300)
    assert anchors is not None
    np.testing.assert_allclose(anchors[0], [0.5 / 19, 0.5 / 19, 0.1, 0.1])
    assert ssd_anchors(1918, 300) is None
    anchor = anchors[1000]
    center, size = np.array([0.4, 0.5]), np.array([0.4, 0.4])
    coded = np.zeros((1, 1917, 4))
    coded[0, 1000, :2] = (center - anchor[:2]) / anchor[2:] * 10
    coded[0, 1000, 2:] = np.log(size / anchor[2:]) * 5
    scores = np.full((1, 1917, 3), -10.0)
    scores[0, :, 0] = 10  # the background's
    scores[0, 1000, 2] = logit(0.9)
    (found,) = ssd({"boxes": coded, "scores": scores}, Reading(["cat", "dog"], anchors=anchors))
    near(found)
    assert found.label == "dog"


@pytest.mark.parametrize(
    ("boxes", "scores", "columns", "is_detector"),
    [
        ("raw_outputs/box_encodings", "raw_outputs/class_predictions", 4, True),
        ("Squeeze", "convert_scores", 4, True),
        ("concat", "concat_1", 4, False),  # rows of four may be anything
        ("concat", "concat_1", 3, True),
    ],
)
def test_an_ssd_of_three_classes_is_one_by_its_names(boxes: str, scores: str, columns: int, is_detector: bool) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1,30,4])
        y = Placeholder(dtype=float, shape=[1,30,{columns}])
        {boxes} = Relu(x, T=float)
        {scores} = Sigmoid(y, T=float)
    """)
    found = recognised(graph)
    assert (found is not None and found.family.name == "ssd") == is_detector


def test_yolo_cells() -> None:
    grid = np.zeros((1, 13, 13, 5, 7))
    grid[..., 4] = -10
    row, column, box = 5, 6, 2
    center, size = np.array([0.4, 0.5]), np.array([0.4, 0.4])
    grid[0, row, column, box, 0] = logit(center[1] * 13 - column)
    grid[0, row, column, box, 1] = logit(center[0] * 13 - row)
    anchors = np.array(YOLO_ANCHORS).reshape(5, 2)
    grid[0, row, column, box, 2:4] = np.log(size * 13 / anchors[box])
    grid[0, row, column, box, 4:] = logit(0.9), -50, 50
    (found,) = yolo({"grid": grid.reshape(1, 13, 13, 35)}, Reading(["cat", "dog"], least=0.25))
    near(found)
    assert found.label == "dog"


def test_heat_maps_have_a_peak_a_thing() -> None:
    heat, sizes, offsets = np.zeros((1, 10, 10, 2)), np.zeros((1, 10, 10, 2)), np.zeros((1, 10, 10, 2))
    heat[0, 4, 5, 1], heat[0, 4, 4, 1] = 0.9, 0.8
    sizes[0, 4, 5], offsets[0, 4, 5] = (4, 4), (0, 0)
    found = heat_maps({"heat": heat, "sizes": sizes, "offsets": offsets}, Reading(["cat", "dog"], least=0.3))
    assert len(found) == 1
    near(found[0])
    assert found[0].label == "dog"


def test_faces_come_in_pixels() -> None:
    marks = np.array([[10.0, 20, 30, 40, 50, 20, 40, 60, 80, 100]])
    outputs = {"boxes": np.array([[20.0, 60, 60, 140]]), "scores": np.array([0.9]), "points": marks}
    (found,) = faces(outputs, Reading(height=100, width=200))
    near(found)
    assert found.points[0] == (0.1, 0.1)


@pytest.mark.parametrize("size", [1, 96])
def test_boxes_that_the_graph_selected_are_shares_or_pixels(size: int) -> None:
    """As YOLO ports of 2018 end in non_max_suppression: no batch, classes from 0."""
    boxes = np.float32([[0.25, 0.5, 0.5, 1.0], [0, 0, 0.125, 0.125]]) * size
    found = {"boxes": boxes, "scores": np.float32([0.9, 0.1]), "classes": np.int64([1, 0])}
    (only,) = selected(found, Reading(["red", "green"], 96, 96, 0.3))
    assert only.box == (0.25, 0.5, 0.5, 1.0)
    assert (only.label, only.score) == ("green", pytest.approx(0.9))


def test_a_graph_that_selects_boxes_is_a_detector_by_the_names_and_shapes_of_its_ends() -> None:
    ends = """
        x = Placeholder(dtype=float, shape=[1,8,8,3])
        boxes = Placeholder(dtype=float, shape=[?,4])
        scores = Placeholder(dtype=float, shape={shape})
    """
    found = recognised(parse(ends.format(shape="[?]")))
    assert found is not None
    assert (found.family.name, dict(found.tensors)) == ("selected", {"boxes": "boxes", "scores": "scores"})
    assert recognised(parse(ends.format(shape="[?,7]"))) is None


def test_a_saved_model_is_a_detector_by_what_its_signature_calls_its_outputs() -> None:
    """As those of TensorFlow 2's Object Detection API, whose tensors have no names of their own."""
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,20,6])
        call = IdentityN(x, x, x, T=[float,float,float])
    """)
    outputs = {"detection_boxes": "call:0", "detection_scores": "call:2", "detection_classes": "call:1"}
    signature = Signature({"input_tensor": "x:0"}, outputs)
    found = recognised(graph.replace(signatures={"serving_default": signature}))
    assert found is not None
    assert found.family.name == "detection_api"
    assert dict(found.tensors) == {"boxes": "call", "scores": "call:2", "classes": "call:1"}
    assert recognised(graph) is None
    assert recognised(graph.replace(signatures={"one": signature, "other": signature})) is None


def test_a_file_is_a_detector_by_its_outputs_alone() -> None:
    """It runs as a whole: what only feeds an output cannot be read."""
    x, inner, boxes = (Value(name, FLOAT, (1, 90, 4)) for name in ("x", "concat_1", "Squeeze"))
    classes, scores = (Value(name, FLOAT, (1, 90, 5)) for name in ("classes", "y"))
    steps = [
        Operation("ABS", [x], [inner]), Operation("NEG", [inner], [boxes]), Operation("NEG", [classes], [scores])
    ]  # fmt: skip
    assert recognised(tflite.parse(model_bytes(Program([x, classes], [boxes, scores], steps)))) is None
    scores.name = "Postprocessor/convert_scores"
    found = recognised(tflite.parse(model_bytes(Program([x, classes], [boxes, scores], steps))))
    assert found is not None
    assert dict(found.tensors) == {"boxes": "Squeeze", "scores": "Postprocessor/convert_scores"}


RESIZED = """
    image_tensor = Placeholder(dtype=uint8, shape=[1,?,?,3])
    floats = Cast(image_tensor, SrcT=uint8, DstT=float)
    sizes = Shape(floats, T=float, out_type=int32)
    begin = Const(int32 [1])
    two = Const(int32 [2])
    three = Const(int32 [3])
    one = Const(int32 [1])
    sides = StridedSlice(sizes, begin, three, one, Index=int32, T=int32)
    size = FloorDiv(sides, two, T=int32)
    small = ResizeBilinear(floats, size, T=float)
    axes = Const(int32 [1, 2])
    mean = Mean(small, axes, T=float, Tidx=int32, keep_dims=false)
    hundred = Const(float [100.0])
    detection_scores = RealDiv(mean, hundred, T=float)
    detection_boxes = Const(float [[[0, 0, 1, 1], [0, 0, 1, 0.5], [0, 0, 0.5, 1]]])
"""


@pytest.mark.parametrize(("is_fixed", "mean"), [(True, 40), (False, 64)])
def test_frames_go_in_as_large_as_a_detectors_graph_resizes_them(is_fixed: bool, mean: int) -> None:
    """They were brought to 320 x 320 first, and again by the graph; TensorFlow's ResizeBilinear takes each fourth pixel
    of a row of 8 for 2, and each second for 4."""
    text = RESIZED.replace("FloorDiv(sides, two, T=int32)", "Const(int32 [2, 2])") if is_fixed else RESIZED
    pixels = np.zeros((4, 8, 3), np.uint8) + np.uint8([0, 0, 96, 80, 80, 80, 80, 80])[:, None]
    app = DetectionApp(parse(text))
    assert (app.model.input.height, app.model.input.width) == ((2, 2) if is_fixed else (0, 0))
    app.threshold = 0.1
    scores = [found.score for found in app(Frame(pixels, 0.0, alone=True)).detections]
    assert scores == pytest.approx([mean / 100] * 3)
