"""InferenceInterface behaves as Android's: copies, feeds that are gone after a run, textual fetch names, its errors."""

import io
import pathlib

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import RunError
from pocketgraph.formats import save, to_bytes
from pocketgraph.graph.text import parse
from pocketgraph.runtime import InferenceInterface

GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[?, 2])
    two = Const(float 2.0)
    y = Mul(x, two, T=float)
    size = Shape(y, T=float, out_type=int32)
    word = Placeholder(dtype=string)
    letters = StringLength(word)
""")


@pytest.fixture
def android() -> InferenceInterface:
    return InferenceInterface(GRAPH)


def test_feed_run_fetch(android: InferenceInterface) -> None:
    source = np.array([1, 2, 3, 4], np.float32)
    android.feed("x", source, 2, 2)
    source[:] = 0  # the feed was copied
    android.run(["y", "size:0"])
    np.testing.assert_array_equal(android.fetch("y"), [[2, 4], [6, 8]])
    assert android.fetch("size:0").tolist() == [2, 2]
    room = np.full(6, -1, np.float32)
    assert android.fetch("y", room) is room
    assert room.tolist() == [2, 4, 6, 8, -1, -1]


def test_feeds_do_not_outlive_a_run(android: InferenceInterface) -> None:
    android.feed("x:0", [1.0, 2.0], 1, 2)
    android.run(["y"])
    with pytest.raises(RunError, match="You must feed a value for placeholder tensor 'x'"):
        android.run(["y"])
    android.feed("x", [1.0, 2.0], 1, 2)
    with pytest.raises(RunError, match="node nope: not found"):
        android.run(["nope"])
    with pytest.raises(RunError, match="You must feed"):
        android.run(["y"])


def test_names_are_compared_as_texts(android: InferenceInterface) -> None:
    android.feed("x", [[1.0, 2.0]])
    android.run(["y"])
    with pytest.raises(RunError, match=r"^Node 'y:0' was not provided to run\(\), so it cannot be read$"):
        android.fetch("y:0")


def test_wrong_destinations(android: InferenceInterface) -> None:
    android.feed("x", [[1.0, 2.0]])
    android.run(["y"])
    with pytest.raises(RunError, match="cannot use int32 with Tensor of type float32"):
        android.fetch("y", np.zeros(2, np.int32))
    with pytest.raises(RunError, match="1 elements cannot take the 2"):
        android.fetch("y", np.zeros(1, np.float32))


@pytest.mark.parametrize(
    ("source", "dims", "problem"),
    [
        (
            np.zeros(5, np.float32),
            (2, 2),
            r"buffer with 5 elements is not compatible with a Tensor with shape \[2, 2\]",
        ),
        (np.zeros(4, np.float16), (2, 2), "cannot use float16"),
        (np.zeros(4, np.float32), (-2, -2), "not compatible"),
        (["a"], (), "cannot use"),
    ],
)
def test_wrong_feeds(android: InferenceInterface, source: object, dims: tuple[int, ...], problem: str) -> None:
    with pytest.raises(RunError, match=problem):
        android.feed("x", source, *dims)


def test_bytes_are_uint8_and_a_wrong_type_fails_in_the_run() -> None:
    android = InferenceInterface(parse("b = Placeholder(dtype=uint8)\nc = Identity(b, T=uint8)"))
    android.feed("b", b"\x01\xff", 2, 1)
    android.run(["c"])
    assert android.fetch("c").tolist() == [[1], [255]]
    android.feed("b", np.zeros((1, 2)))
    with pytest.raises(RunError, match="float64, the graph wants uint8"):
        android.run(["c"])


def test_strings(android: InferenceInterface) -> None:
    android.feedString("word", [b"four", "six"])
    android.run(["letters"])
    assert android.fetch("letters").tolist() == [4, 3]
    android.feed_string("word", b"three")
    android.run(["letters"])
    assert android.fetch("letters").shape == ()


def test_graph_operations(android: InferenceInterface) -> None:
    assert android.graph() is GRAPH
    assert android.graphOperation("y").op == "Mul"
    with pytest.raises(RunError, match=r"^Node 'z' does not exist in model ''$"):
        android.graph_operation("z")


def test_statistics_add_up(android: InferenceInterface) -> None:
    assert android.getStatString() == ""
    for _ in range(2):
        android.feed("x", [[1.0, 2.0]])
        android.run(["y"], True)
    said = android.get_stat_string()
    assert "Top 10 CPU" in said
    assert "Timings (microseconds): count=2 " in said
    assert "\ty\n" in said
    assert said.endswith("nodes observed\n")


def test_models_from_files_and_streams(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.pb"
    save(GRAPH, path)
    for model in (path, str(path), io.BytesIO(to_bytes(GRAPH)), f"file:///android_asset/{path}"):
        with pocketgraph.InferenceInterface(model) as android:
            android.feed("x", [[1.0, 2.0]])
            android.run(["y"])
            assert android.fetch("y").tolist() == [[2, 4]]
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff no graph")
    for bad in ("none.pb", "bad.pb"):
        with pytest.raises(RunError, match=rf"Failed to load model from '.*{bad}'"):
            InferenceInterface(tmp_path / bad)
    with pytest.raises(RunError, match="Failed to load model from the input stream"):
        InferenceInterface(io.BytesIO(b"\xff\xff no graph"))


def test_targets_run(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        v = VariableV2(dtype=float, shape=[])
        one = Const(float 1.0)
        set = Assign(v, one, T=float)
        now = Identity(v, T=float)
    """)
    android = InferenceInterface(graph)
    android.run([], False, ["set"])
    android.run(["now"])
    assert android.fetch("now") == 1
    android.close()
    with pytest.raises(RunError, match="closed Session"):
        android.run(["now"])
