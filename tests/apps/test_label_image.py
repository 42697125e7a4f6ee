"""The labeler gives TensorFlow's answers for real pictures, and finds what it is not told."""

import json
import pathlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from pocketgraph import export
from pocketgraph.apps.label_image import Labeler, Prediction, label_image, mismatch
from pocketgraph.apps.picture_model import find_output
from pocketgraph.datasets import presets
from pocketgraph.datasets.class_labels import read_labels
from pocketgraph.errors import FormatError, RunError, UsageError
from pocketgraph.graph.text_format import parse, print_graph
from support import model_dir, model_info, needs_shared, shared

RECORDS = json.loads((pathlib.Path(__file__).parent / "golden" / "label_image.json").read_text())
"""What TensorFlow 2.21 answered: decode_jpeg or decode_png, its ResizeBilinear, the model; the five best classes."""

AVERAGES = """
    x = Placeholder(dtype=float, shape=[1,2,2,3])
    axes = Const(int32 [1, 2])
    scores = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
"""
"""A "classifier" whose three scores are the average red, green and blue."""


@pytest.fixture
def orange(tmp_path: pathlib.Path) -> pathlib.Path:
    Image.new("RGB", (5, 7), (255, 102, 0)).save(tmp_path / "orange.png")
    return tmp_path / "orange.png"


@needs_shared
@pytest.mark.parametrize("name", ["mobilenet_v1_025_128", "poets_retrained_128"])
def test_answers_as_tensorflow_does(name: str) -> None:
    base = shared()
    assert base is not None
    labeler = Labeler(pocketgraph.load(model_dir(name) / model_info(name)["file"]))
    assert labeler.preset is not None
    records = [record for record in RECORDS if record["model"] == name]
    assert records
    for record in records:
        best = labeler.label(base / "models" / record["image"])
        assert [p.index for p in best] == [index for index, _ in record["top"]]
        np.testing.assert_allclose([p.score for p in best], [score for _, score in record["top"]], atol=1e-4)
        assert best[0].index == record["tensorflow_default_decoder_top1"][0]


def test_scores_and_their_order(orange: pathlib.Path) -> None:
    best = Labeler(parse(AVERAGES), ["red", "green", "blue"]).label(orange, top=2)
    assert [str(p) for p in best] == ["red (0): 1", "green (1): 0.4"]


@pytest.mark.parametrize(("output", "share"), [("score", 0.574443), ("share", 0.574443)])
def test_one_score_is_of_the_second_of_two_classes(orange: pathlib.Path, output: str, share: float) -> None:
    """A red of 1 and a green of 0.4, less 0.5 of both: 0.3 is a logit straight from the layer, and no share."""
    graph = parse(
        AVERAGES
        + """
        w = Const(float [[0.5],[-0.5],[0]])
        score = MatMul(scores, w, T=float)
        share = Sigmoid(score, T=float)
    """
    )
    best = Labeler(graph, ["bad", "good"], output_layer=output).label(orange)
    assert [p.label for p in best] == ["good", "bad"]
    assert best[0].score == pytest.approx(share, abs=1e-5)


def test_equal_scores_come_in_the_order_of_their_index(orange: pathlib.Path) -> None:
    Image.new("RGB", (2, 2), (9, 9, 9)).save(orange)
    assert [p.index for p in Labeler(parse(AVERAGES)).label(orange)] == [0, 1, 2]


def test_mean_and_std(orange: pathlib.Path) -> None:
    scores = Labeler(parse(AVERAGES), mean=127.5, std=127.5).scores(orange)
    np.testing.assert_allclose(scores, [1, -0.2, -1], atol=1e-6)


def test_labels_that_are_missing_become_indexes(orange: pathlib.Path) -> None:
    best = Labeler(parse(AVERAGES), ["red"]).label(orange)
    assert [p.label for p in best] == ["red", "class 1", "class 2"]
    assert "1 line and the output 3 scores" in mismatch(["red"], 3)
    assert mismatch([], 3) == mismatch(["a", "b", "c"], 3) == ""


@pytest.mark.parametrize(
    ("score", "text"), [(0.834304630, "0.834305"), (1e-7, "1e-07"), (1.0, "1"), (12345678.0, "1.23457e+07")]
)
def test_scores_print_with_six_digits(score: float, text: str) -> None:
    assert str(Prediction(653, "military uniform", score)) == f"military uniform (653): {text}"


def test_a_fixed_batch_is_filled_with_the_picture(orange: pathlib.Path) -> None:
    graph = parse(AVERAGES.replace("[1,2,2,3]", "[4,2,2,3]"))
    np.testing.assert_allclose(Labeler(graph).scores(orange), [1, 0.4, 0], atol=1e-6)


def test_an_output_that_is_no_list_of_scores_is_refused(orange: pathlib.Path) -> None:
    graph = parse(AVERAGES + "same = Identity(x, T=float)\nbest = ArgMax(scores, zero, T=float)\nzero = Const(int32 1)")
    with pytest.raises(RunError, match=r"float32\[1, 2, 2, 3\], not one score a class.*output_layer"):
        Labeler(graph, output_layer="same").label(orange)
    with pytest.raises(RunError, match=r"int64\[1\], not one score"):
        Labeler(graph, output_layer="best").label(orange)


def test_the_output_is_the_node_that_nothing_consumes() -> None:
    assert find_output(parse(AVERAGES)) == "scores"
    two = AVERAGES + "probabilities = Softmax(scores, T=float)\nbest = ArgMax(scores, axes, T=float)"
    assert find_output(parse(two)) == "probabilities"
    assert find_output(parse(AVERAGES + "best = ArgMax(x, axes, T=float)")) == "scores"
    with pytest.raises(UsageError, match=r"2 nodes may be the output .scores, other.*output_layer"):
        find_output(parse(AVERAGES + "other = Relu(x, T=float)"))
    with pytest.raises(UsageError, match="nothing in this graph"):
        find_output(parse("x = Placeholder(dtype=float, shape=[1,2,2,3])"))


def retrained(size: str) -> Any:
    return parse(f"""
        input = Placeholder(dtype=float, shape={size})
        axes = Const(int32 [1, 2])
        MobilenetV1/mean = Mean(input, axes, T=float, Tidx=int32, keep_dims=false)
        final_result = Softmax(MobilenetV1/mean, T=float)
    """)


def test_a_preset_is_recognised_and_the_graph_knows_better_about_size() -> None:
    labeler = Labeler(retrained("[1,128,128,3]"))
    assert labeler.preset is presets.PRESETS["retrained_mobilenet"]
    assert (labeler.mean, labeler.std, labeler.input.width) == (127.5, 127.5, 128)
    assert Labeler(retrained("[1,?,?,3]")).input.width == 224
    assert Labeler(retrained("[1,?,?,3]"), width=160, height=128).input.height == 128


def test_what_retrain_makes_of_another_base_is_not_taken_for_a_mobilenet() -> None:
    """Its input may be called so, too."""
    graph = retrained("[1,8,8,3]")
    other = parse(print_graph(graph, full=True).replace("MobilenetV1/", "net/"))
    assert presets.recognise(graph) is presets.PRESETS["retrained_mobilenet"]
    assert presets.recognise(other) is None


def test_with_a_layer_given_the_original_defaults_hold() -> None:
    labeler = Labeler(retrained("[1,128,128,3]"), input_layer="input", output_layer="final_result")
    assert labeler.preset is None
    assert (labeler.mean, labeler.std) == (0, 255)


def test_what_is_given_beats_the_preset() -> None:
    labeler = Labeler(retrained("[1,128,128,3]"), preset="retrained-mobilenet", mean=0)
    assert (labeler.mean, labeler.std) == (0, 127.5)


def test_unknown_names() -> None:
    with pytest.raises(UsageError, match=r"no preset 'mobilnet'.*did you mean 'mobilenet'"):
        Labeler(retrained("[1,8,8,3]"), preset="mobilnet")
    with pytest.raises(UsageError, match=r"output_layer: .*no node 'final_resutl'.*'final_result'"):
        Labeler(retrained("[1,8,8,3]"), output_layer="final_resutl")
    with pytest.raises(UsageError, match=r"input_layer: .*no node 'Mul'"):
        Labeler(retrained("[1,8,8,3]"), input_layer="Mul")
    with pytest.raises(UsageError, match=r"^std is 0"):
        Labeler(retrained("[1,8,8,3]"), std=0)


def test_labels_files(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "labels.txt"
    path.write_bytes("\ufeffdandelion\r\n\r\nrosé \r\n\r\n".encode())
    assert read_labels(path) == ["dandelion", "", "rosé"]
    path.write_bytes(b"")
    assert read_labels(path) == []
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(FormatError, match="not a labels file"):
        read_labels(path)
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(FormatError, match=r"no labels file in UTF-8 \(.* at byte 3\); save it in UTF-8"):
        read_labels(path)
    path.write_text("daisy\r\nrosé\r\n", encoding="utf-16", newline="")  # as PowerShell writes lists
    assert read_labels(path) == ["daisy", "rosé"]
    with pytest.raises(FormatError, match="No such file"):
        read_labels(tmp_path / "none.txt")


WITH_DROPOUT = """
    x = Placeholder(dtype=float, shape=[1,2,2,3])
    keep_prob = Placeholder(dtype=float, shape=<unknown>)
    unrelated = Placeholder(dtype=bool, shape=[])
    axes = Const(int32 [1, 2])
    mean = Mean(x, axes, T=float, Tidx=int32, keep_dims=false)
    scores = Mul(mean, keep_prob, T=float)
"""


def test_other_placeholders_are_fed_when_given_and_asked_for_when_not(orange: pathlib.Path) -> None:
    graph = parse(WITH_DROPOUT)
    labeler = Labeler(graph, input_layer="x", output_layer="scores", feeds={"keep_prob": 1})
    np.testing.assert_allclose(labeler.scores(orange), [1, 0.4, 0], atol=1e-6)
    with pytest.raises(UsageError, match="'scores' needs more than a picture; pass feeds keep_prob=VALUE"):
        Labeler(graph, input_layer="x", output_layer="scores")
    rows = parse(WITH_DROPOUT.replace("<unknown>", "[?,3]"))
    with pytest.raises(UsageError, match=r"a picture; a Session feeds arrays from Python: keep_prob \[\?,3\]$"):
        Labeler(rows, input_layer="x", output_layer="scores")  # the option takes one number


def test_a_guessed_size_that_does_not_run_is_owned_up_to(orange: pathlib.Path) -> None:
    graph = parse("""
        input = Placeholder(dtype=float, shape=[])
        MobilenetV1/w = Const(float[128,128,3,2] 0.5)
        conv = Conv2D(input, MobilenetV1/w, T=float, strides=[1,1,1,1], padding="VALID")
        final_result = Squeeze(conv, T=float, squeeze_dims=[1, 2])
    """)
    with pytest.raises(RunError, match="the size 224 x 224 is a guess: pass width"):
        Labeler(graph).label(orange)
    assert Labeler(graph, width=128, height=128).scores(orange).shape == (2,)


RETRAINED_INCEPTION = """
    DecodeJpeg/contents = Placeholder(dtype=string, shape=[])
    DecodeJpeg = DecodeJpeg(DecodeJpeg/contents, channels=3)
    Cast = Cast(DecodeJpeg, SrcT=uint8, DstT=float)
    zero = Const(int32 0)
    ExpandDims = ExpandDims(Cast, zero, T=float, Tdim=int32)
    size = Const(int32 [199, 99])
    ResizeBilinear = ResizeBilinear(ExpandDims, size, T=float, align_corners=false)
    scale = Const(float 0.0078125)
    Mul = Mul(ResizeBilinear, scale, T=float)
    axes = Const(int32 [1, 2])
    mean = Mean(Mul, axes, T=float, Tidx=int32, keep_dims=false)
    final_result = Identity(mean, T=float)
"""


def test_a_picture_may_go_in_behind_the_graphs_own_decoder(orange: pathlib.Path) -> None:
    labeler = Labeler(parse(RETRAINED_INCEPTION))
    assert labeler.preset is presets.PRESETS["retrained"]
    assert (labeler.input.tensor, labeler.input.height, labeler.input.width) == ("Mul:0", 199, 99)
    np.testing.assert_allclose(labeler.scores(orange), [127 / 128, -26 / 128, -1], atol=1e-5)


def test_a_graph_may_resize_the_picture_itself(orange: pathlib.Path) -> None:
    labeler = Labeler(parse(RETRAINED_INCEPTION), input_layer="DecodeJpeg/contents", output_layer="final_result")
    np.testing.assert_allclose(labeler.scores(orange), [255 / 128, 102 / 128, 0], atol=1e-5)


def test_label_maps(tmp_path: pathlib.Path) -> None:
    """As the Object Detection API writes them; a text that only looks like one stays a list of lines."""
    path = tmp_path / "label_map.pbtxt"
    path.write_text(
        'item {\n  id: 1\n  name: \'cat\'\n}\nitem {\n  name: "/m/01"\n  id: 3\n  display_name: "a dog"\n}\n'
    )
    assert read_labels(path) == ["???", "cat", "???", "a dog"]
    path.write_text("item {\n  name: 'cat'\n}\n")
    with pytest.raises(FormatError, match="no id or no name"):
        read_labels(path)
    path.write_text("item one\nitem {two}\n")
    assert read_labels(path) == ["item one", "item {two}"]


def test_scores_are_taken_where_the_graph_ends_in_the_class_that_it_picks(orange: pathlib.Path) -> None:
    picks = parse(AVERAGES + """
    axis = Const(int32 1)
    class = ArgMax(scores, axis, T=float, Tidx=int32, output_type=int64)
    """)  # fmt: skip
    best = Labeler(picks, ["red", "green", "blue"]).label(orange, top=2)
    assert [str(p) for p in best] == ["red (0): 1", "green (1): 0.4"]


def test_names_of_classes_beside_the_scores_are_no_scores() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,2,2,3])
        axes = Const(int32 [1, 2])
        scores = Mean(x, axes, T=float, Tidx=int32)
        last = Const(int32 1)
        best = ArgMax(scores, last, T=float, Tidx=int32, output_type=int64)
        name = AsString(best, T=int64)
    """).replace(outputs=["name", "scores"])
    (found,) = label_image(graph, np.uint8([[[255, 51, 0]]]), top=1)
    assert found.predictions[0].index == 0


def test_of_several_results_the_shares_of_classes_are_taken() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,2,2,3])
        axes = Const(int32 [1, 2])
        means = Mean(x, axes, T=float, Tidx=int32)
        size = Const(int32 [1, 1])
        zeros = Const(int32 [0, 0])
        age = Slice(means, zeros, size, T=float, Index=int32)
        kind = Softmax(means, T=float)
        both = IdentityN(age, kind, T=[float, float])
    """).replace(outputs=["both", "both:1"])
    assert find_output(graph) == "both:1"


def test_a_graph_that_resizes_pictures_itself_gets_them_as_they_are() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,?,?,3])
        size = Const(int32 [2, 2])
        small = ResizeBilinear(x, size, T=float, align_corners=false, half_pixel_centers=true)
        axes = Const(int32 [1, 2])
        scores = Mean(small, axes, T=float, Tidx=int32)
    """)
    pixels = np.random.default_rng(0).integers(0, 255, (5, 7, 3)).astype(np.uint8)
    (found,) = label_image(graph, pixels, top=3, input_mean=0, input_std=1)
    with pocketgraph.Session(graph) as session:
        (wanted,) = session.run(["scores"], {"x": pixels[np.newaxis].astype(np.float32)})
    for one in found.predictions:
        assert one.score == pytest.approx(wanted[0, one.index], rel=1e-6)


def test_images_of_pillow_and_tensors_are_taken_as_pixels() -> None:
    class Tensor:
        def __init__(self, values: Any) -> None:
            self.values = values

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self.values

        def __iter__(self) -> Any:
            return iter(self.values)

    image = Image.new("RGB", (10, 10), (255, 51, 0))
    wanted = pocketgraph.label_image(parse(AVERAGES), np.asarray(image))
    given = [image, image.convert("RGBA"), Tensor(np.asarray(image))]
    assert pocketgraph.label_image(parse(AVERAGES), given) == wanted * 3
    for one in given:
        assert pocketgraph.label_image(parse(AVERAGES), one) == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(10,), (10, 10), (10, 10, 4), (0, 10, 3), (1, 10, 10, 3)])
def test_arrays_that_are_no_pictures_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=r"pixels are uint8 \[height, width, 3\]"):
        pocketgraph.label_image(parse(AVERAGES), np.zeros(shape, np.uint8), input_mean=0, input_std=255)


def test_what_is_no_model_is_refused_in_python() -> None:
    for wrong in (None, b"bytes", 5):
        with pytest.raises(UsageError, match="a model is read from a path"):
            pocketgraph.load(wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no model is given"):
        pocketgraph.evaluate([], np.zeros((1, 2, 2, 3), np.float32))


def test_of_two_heads_of_a_shipped_file_the_shares_are_the_scores(orange: pathlib.Path, tmp_path: pathlib.Path) -> None:
    heads = parse(AVERAGES + """
    shares = Softmax(scores, T=float)
    axis = Const(int32 1)
    total = Sum(scores, axis, T=float, Tidx=int32, keep_dims=false)
    bright = Sigmoid(total, T=float)
    """)  # fmt: skip
    pocketgraph.export(heads, tmp_path / "heads.tflite", outputs=["shares", "bright"])
    for model in (heads, tmp_path / "heads.tflite"):
        (found,) = label_image(model, orange, ["red", "green", "blue"])
        assert [one.label for one in found.predictions] == ["red", "green", "blue"]


def test_paths_in_arrays_are_paths(tmp_path: pathlib.Path) -> None:
    image = Image.new("RGB", (10, 10), (255, 51, 0))
    image.save(tmp_path / "red.png")
    paths = np.array([str(tmp_path / "red.png")] * 2)
    wanted = [found.predictions for found in pocketgraph.label_image(parse(AVERAGES), np.asarray(image))]
    for given in (paths, paths.astype(object), list(paths)):
        found = pocketgraph.label_image(parse(AVERAGES), given)  # type: ignore[arg-type]
        assert [one.predictions for one in found] == wanted * 2
    (one,) = pocketgraph.label_image(parse(AVERAGES), paths[0])
    assert one.predictions == wanted[0]


def test_a_file_that_states_its_scaling_needs_no_presets(tmp_path: pathlib.Path) -> None:
    """A preset's layers are told of where the scaling is theirs."""
    graph = parse("""
        input = Placeholder(dtype=float, shape=[1,8,8,3])
        MobilenetV1/axes = Const(int32 [1, 2])
        final_result = Mean(input, MobilenetV1/axes, T=float, Tidx=int32)
    """)
    stated = tmp_path / "stated.tflite"
    export(graph, stated, input_mean=3.0, input_std=5.0)
    Image.new("RGB", (8, 8), "red").save(tmp_path / "red.png")
    notes: list[str] = []
    label_image(stated, [tmp_path / "red.png"], notify=notes.append)
    assert not any("preset" in note for note in notes)
    label_image(graph, [tmp_path / "red.png"], notify=notes.append)
    assert any("preset=retrained_mobilenet: input_mean 127.5" in note for note in notes)
