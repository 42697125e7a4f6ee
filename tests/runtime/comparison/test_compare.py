"""The comparison of two models: the numbers, the verdict, made-up feeds, and files of feeds."""

import pathlib

import numpy as np
import pytest

from pocketgraph.errors import RunError, UsageError
from pocketgraph.exporting import export
from pocketgraph.formats import save
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import verify
from pocketgraph.runtime.comparison.compare import compared
from pocketgraph.runtime.feeding.default_tensors import default_fetches, needed_placeholders
from pocketgraph.runtime.feeding.feed_files import read_feeds
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds, synthetic_shapes


def model(bias: str = "[0.0, 0.0]") -> Graph:
    return parse(f"""
        in/x = Placeholder(dtype=float, shape=[?,2])
        b = Const(float {bias})
        y = BiasAdd(in/x, b, T=float)
        p = Softmax(y, T=float)
    """)


def test_the_numbers() -> None:
    a = np.array([[1.0, -4.0], [2.0, 0.0]], np.float32)
    b = np.array([[1.0, -4.0], [1.5, 0.25]], np.float32)
    found = compared("y", [(a, b)], 0.2)
    assert (found.largest, found.mean, found.worst) == (0.5, 0.1875, (1, 0))
    assert (found.largest_relative, found.mean_relative) == (0.125, 0.046875)  # of the peak, 4
    assert found.top1 == 1.0
    assert found.passed
    assert not compared("y", [(a, b)], 0.1).passed


def test_an_output_that_is_mostly_not_finite_is_not_proven() -> None:
    nothing, half = np.full(3, np.nan, np.float32), np.float32([np.nan, np.inf, 1, 2])
    found = compared("y", [(nothing, nothing)], 1e-4)
    assert found.unproven == "is NaN or infinite in 3 of its 3 elements"
    assert compared("y", [(half, half)], 1e-4).unproven == ""
    assert not compared("y", [(half, nothing.repeat(2)[:4])], 1e-4).passed
    words = np.array([b"a"], object)
    assert compared("y", [(words, words)], 1e-4).unproven == ""


def test_top1_counts_rows() -> None:
    a = np.array([[0.1, 0.2], [0.2, 0.1], [0.3, 0.1], [0.0, 1.0]])
    b = np.array([[0.2, 0.1], [0.2, 0.1], [0.3, 0.1], [0.0, 1.0]])
    assert compared("y", [(a, b)], 1.0).top1 == 0.75
    assert compared("y", [(a, b)], 1.0, top1=0.75).passed
    assert not compared("y", [(a, b)], 1.0, top1=0.8).passed
    assert compared("y", [(a, a), (a, b)], 1.0).top1 == 0.875


@pytest.mark.parametrize(
    ("a", "b", "passed"),
    [
        (np.array([np.nan, np.inf, 1.0]), np.array([np.nan, np.inf, 1.0]), True),
        (np.array([np.nan, 1.0]), np.array([1.0, 1.0]), False),
        (np.array([1.0, 1.0]), np.array([np.nan, 1.0]), False),
        (np.array([np.inf, 1.0]), np.array([-np.inf, 1.0]), False),
        (np.array([1, 2]), np.array([1, 2]), True),
        (np.array([1, 2]), np.array([1, 3]), False),
        (np.array([True, False]), np.array([True, True]), False),
        (np.array([b"a", b"b"], object), np.array([b"a", b"b"], object), True),
        (np.array([b"a", b"b"], object), np.array([b"a", b"c"], object), False),
        (np.zeros((0, 3)), np.zeros((0, 3)), True),
        (np.zeros(3), np.zeros(3), True),
        (np.zeros(3), np.array([0, 1e-30, 0]), False),
        (np.float32(2.0), np.float32(2.0), True),
        (np.zeros((2, 3)), np.zeros((3, 2)), False),
        (np.zeros(2, np.int32), np.zeros(2, np.float32), False),
        (np.array([1 + 1j]), np.array([1 + 1j]), True),
        (np.array([200], np.uint8), np.array([100], np.uint8), False),
    ],
)
def test_verdicts_at_the_edges(a: np.ndarray, b: np.ndarray, passed: bool) -> None:
    assert compared("y", [(np.asarray(a), np.asarray(b))], 1e-4).passed is passed


def test_equal_and_different_models() -> None:
    assert verify(model(), model())
    report = verify(model(), model("[0.0, 0.5]"), outputs=["y", "p:0"], runs=3)
    assert not report
    assert [d.name for d in report.outputs] == ["y", "p:0"]
    assert report.outputs[0].largest == pytest.approx(0.5)
    assert report.runs == 3
    assert verify(model(), model("[0.0, 0.5]"), outputs=["y"], tolerance=2.0)


def test_made_up_feeds_are_seeded_and_fit_the_declaration() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,3])
        k = Placeholder(dtype=uint8, shape=[64])
        i = Placeholder(dtype=int64, shape=[50])
        t = Placeholder(dtype=bool, shape=[])
        s = Placeholder(dtype=string, shape=[2])
        h = Placeholder(dtype=bfloat16, shape=[2])
        all = Pack(x, k, i, t, s, h)
        unused = Placeholder(dtype=float, shape=<unknown>)
    """)
    feeds = synthetic_feeds(graph, ["all"], seed=3)
    assert {name: (v.dtype.name, v.shape) for name, v in feeds.items()} == {
        "x": ("float32", (1, 3)), "k": ("uint8", (64,)), "i": ("int64", (50,)), "t": ("bool", ()),
        "s": ("object", (2,)), "h": ("bfloat16", (2,)),
    }  # fmt: skip
    assert feeds["k"].max() > 200
    assert feeds["i"].max() < 10
    again, other = synthetic_feeds(graph, ["all"], seed=3), synthetic_feeds(graph, ["all"], seed=4)
    np.testing.assert_array_equal(again["x"], feeds["x"])
    assert not np.array_equal(other["x"], feeds["x"])
    with pytest.raises(UsageError, match="how many dimensions the input 'unused'"):
        synthetic_feeds(graph, ["unused"])
    huge = parse("x = Placeholder(dtype=float, shape=[100000,100000])\n y = Neg(x, T=float)")
    with pytest.raises(UsageError, match="too large to make up"):
        synthetic_feeds(huge, ["y"])


def test_pictures_of_open_size_are_made_up_as_large_as_pictures_are() -> None:
    graph = parse("""
        picture = Placeholder(dtype=float, shape=[?,?,?,3])
        bytes = Placeholder(dtype=uint8, shape=[2,?,?,1])
        features = Placeholder(dtype=float, shape=[?,?,?,64])
        steps = Placeholder(dtype=float, shape=[?,?,3])
        tall = Placeholder(dtype=float, shape=[?,8,?,3])
        all = Pack(picture, bytes, features, steps, tall)
    """)
    assert synthetic_shapes(graph, ["all"]) == {
        "picture": (1, 224, 224, 3), "bytes": (2, 224, 224, 1), "features": (1, 1, 1, 64), "steps": (1, 1, 3),
        "tall": (1, 8, 1, 3),
    }  # fmt: skip


def test_made_up_feeds_are_plain_where_random_ones_do_not_fit() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,?])
        lengths = Placeholder(dtype=int32, shape=[?])
        y = ReverseSequence(x, lengths, seq_dim=1, batch_dim=0, T=float, Tlen=int32)
    """)
    for seed in range(5):
        assert verify(graph, graph, seed=seed).passed
    never = parse("""
        x = Placeholder(dtype=float, shape=[2,3])
        n = Placeholder(dtype=int32, shape=[2])
        y = Reshape(x, n, T=float, Tshape=int32)
    """)
    with pytest.raises(RunError, match="made up, pass some that fit with inputs"):
        verify(never, never, outputs=["y"])


def test_likely_outputs_leave_branches_out() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1])
        p = Placeholder(dtype=bool, shape=[])
        cond/Switch = Switch(p, p, T=bool)
        cond/switch_t = Identity(cond/Switch:1, T=bool)
        y = Softmax(x, T=float)
    """)
    assert default_fetches(graph) == ("y",)


@pytest.mark.parametrize("key", ["in/x:0", "in/x", "in/x_0", "in_x_0", "in_in/x_0", "in_in_x_0", "in_in/x:0", "in_x"])
def test_keys_of_npz_files(tmp_path: pathlib.Path, key: str) -> None:
    path = tmp_path / "feeds.npz"
    np.savez(path, **{key: np.ones((1, 2), np.float32), "out_p_0": np.zeros(1)})
    assert list(read_feeds(path, model())) == ["in/x:0"]
    assert verify(model(), model(), path)


def test_unreadable_feeds(tmp_path: pathlib.Path) -> None:
    missing, text, objects, single, cut = (tmp_path / n for n in ("no.npz", "t.npz", "o.npz", "a.npy", "cut.npz"))
    text.write_text("this is no archive")
    np.savez(objects, **{"in/x": np.array([{}], object)})
    np.save(single, np.zeros(2))
    np.savez(cut, x=np.zeros(1000))
    cut.write_bytes(cut.read_bytes()[:700])
    for path, problem in (
        (missing, "no such file"),
        (text, "not a readable .npz"),
        (objects, "Python objects"),
        (single, "one array"),
        (cut, "not a readable .npz"),
    ):
        with pytest.raises(UsageError, match=problem) as caught:
            read_feeds(path, model())
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
    np.savez(tmp_path / "wrong.npz", **{"in/z": np.zeros(1)})
    with pytest.raises(UsageError, match=r"'in/z' names no tensor of the model; did you mean 'in/x'"):
        read_feeds(tmp_path / "wrong.npz", model())


def test_outputs_that_a_model_lacks(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="the second model has no output 'y'"):
        verify(model(), parse("in/x = Placeholder(dtype=float, shape=[?,2])"), outputs=["y"])
    with pytest.raises(UsageError, match="the first model has no output 'yy'; did you mean 'y'"):
        verify(model(), model(), outputs=["yy"])
    other = "in/x = Placeholder(dtype=float, shape=[?,2])"
    with pytest.raises(UsageError, match=r"likely outputs \(p\) is in the second"):
        verify(model(), parse(f"{other}\n q = Neg(in/x, T=float)\n r = Abs(in/x, T=float)"))


def test_the_only_outputs_are_compared_whatever_their_names() -> None:
    renamed = parse("""
        image = Placeholder(dtype=float, shape=[?,2])
        bias = Const(float [0.0, 0.5])
        logits = BiasAdd(image, bias, T=float)
        shares = Softmax(logits, T=float)
    """)
    report = verify(model("[0.0, 0.5]"), renamed)
    assert report.passed
    assert report.notes == ("'in/x:0' is compared with 'image:0'", "'p' is compared with 'shares:0'")
    assert not verify(model(), renamed)
    with pytest.raises(UsageError, match="the second model has no output 'p'"):
        verify(model(), renamed, outputs=["p"])


def test_inputs_that_a_signature_named_are_found_in_a_file(tmp_path: pathlib.Path) -> None:
    """TensorFlow 2 calls the placeholder of an input after its signature, and a file calls it after the input."""
    given = """
        {0}left = Placeholder(dtype=float, shape=[1,2])
        {0}right = Placeholder(dtype=float, shape=[1,2])
        {1} = Sub({0}left, {0}right, T=float)
    """
    export(parse(given.format("", "output_0")), tmp_path / "net.tflite")
    frozen = parse(given.format("serving_default_", "StatefulPartitionedCall"))
    assert verify(frozen, tmp_path / "net.tflite")
    turned = parse(
        given.format("serving_default_", "y").replace("left, serving_default_right,", "right, serving_default_left,")
    )
    assert not verify(turned, tmp_path / "net.tflite")


def test_results_of_one_node_are_compared_in_their_order(tmp_path: pathlib.Path) -> None:
    """As a frozen SavedModel of TensorFlow 2 calls them, whose file has the signature's names."""
    given = """
        x = Placeholder(dtype=float, shape=[1,2])
        shares = Softmax(x, T=float)
        state = Tanh(x, T=float)
    """
    export(parse(given), tmp_path / "net.tflite", outputs=["shares", "state"])
    frozen = parse(given + "StatefulPartitionedCall = IdentityN(shares, state, T=list[float, float])")
    report = verify(frozen, tmp_path / "net.tflite")
    assert report.passed
    assert len(report.outputs) == 2
    assert report.notes[0] == "'StatefulPartitionedCall' is compared with 'shares:0'"
    turned = parse(given + "StatefulPartitionedCall = IdentityN(state, shares, T=list[float, float])")
    assert not verify(turned, tmp_path / "net.tflite")


def test_files_and_graphs_mix(tmp_path: pathlib.Path) -> None:
    save(model(), tmp_path / "m.pb")
    assert verify(tmp_path / "m.pb", model(), {"in/x": [[1.0, 2.0]]})


def test_a_default_from_a_queue_is_fed_and_a_constant_one_is_not() -> None:
    graph = parse("""
        queue = FIFOQueueV2(component_types=[float])
        batch = QueueDequeueV2(queue, component_types=[float])
        image = PlaceholderWithDefault(batch, dtype=float, shape=[?,2])
        one = Const(float 1)
        keep = PlaceholderWithDefault(one, dtype=float, shape=[])
        y = Mul(image, keep, T=float)
    """)
    assert {name: feed.shape for name, feed in synthetic_feeds(graph, ["y"]).items()} == {"image": (1, 2)}
    assert verify(graph, graph, outputs=["y"])


def test_a_default_from_an_iterator_is_fed_though_a_placeholder_names_the_iterator() -> None:
    graph = parse("""
        handle = Placeholder(dtype=string, shape=[])
        iterator = IteratorFromStringHandle(handle)
        batch = IteratorGetNext(iterator, output_types=[float], output_shapes=[[?,2]])
        image = PlaceholderWithDefault(batch, dtype=float, shape=[?,2])
        y = Relu(image, T=float)
    """)
    assert needed_placeholders(graph, ["y"]) == ["image"]


def test_a_layer_that_training_cached_is_not_fed() -> None:
    graph = parse("""
        image = Placeholder(dtype=float, shape=[?,2])
        features = Relu(image, T=float)
        cached = PlaceholderWithDefault(features, dtype=float, shape=[?,2])
        y = Softmax(cached, T=float)
    """)
    assert needed_placeholders(graph, ["y"]) == ["image"]


@pytest.mark.parametrize(("tolerance", "passed"), [(0.02, True), (0.005, False)])
def test_of_picked_classes_the_share_of_the_tolerance_may_be_others(tolerance: float, passed: bool) -> None:
    places = np.arange(100) % 5
    others = places.copy()
    others[7] = 4
    assert compared("classes", [(places, others)], tolerance).passed is passed
