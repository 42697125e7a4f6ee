"""InferenceInterface behaves as Android's: copies, feeds that are gone after a run, textual fetch names, its errors."""

import array
import io
import pathlib

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import RunError
from pocketgraph.formats import save, to_bytes
from pocketgraph.graph.text_format import parse
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
    with pytest.raises(RunError, match=r"^No Operation named \[nope\] in the Graph"):
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
    with pytest.raises(RunError, match=r"Expects arg\[0\] to be uint8 but double is provided \('b:0'\)"):
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
    operation = android.graphOperation("y")
    assert (operation.name, operation.op, operation.type, operation.numOutputs()) == ("y", "Mul", "Mul", 1)
    assert operation.output(0).shape.dims == (None, 2)
    assert str(operation.output(0).dtype) == "float"
    assert android.graph_operation("letters").output(0).shape.dims is None
    with pytest.raises(RunError, match="'y' \\(Mul\\) has 1 outputs, there is no output 1"):
        operation.output(1)
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


KINDS = {"float": "f", "double": "d", "int32": "i", "int64": "q", "uint8": "B"}


@pytest.mark.parametrize("kind", [*KINDS, "bool"])
def test_every_type_goes_in_and_out_as_arrays_and_as_buffers(kind: str) -> None:
    android = InferenceInterface(parse(f"x = Placeholder(dtype={kind})\ny = Identity(x, T={kind})"))
    numbers = [1, 0, 1, 1, 0, 1]
    dtype = np.dtype({"float": "float32", "double": "float64"}.get(kind, kind))
    sources: list[object] = [np.array(numbers, dtype), np.array(numbers, dtype).reshape(2, 3)]
    if kind in KINDS:
        sources += [array.array(KINDS[kind], numbers), memoryview(array.array(KINDS[kind], numbers)), numbers]
    if kind == "uint8":
        sources += [bytes(numbers), bytearray(numbers)]
    for source in sources:
        android.feed("x", source, 2, 3)
        android.run(["y"])
        out = android.fetch("y")
        assert (out.dtype, out.tolist()) == (dtype, np.array(numbers, dtype).reshape(2, 3).tolist())
        if kind in KINDS:
            room = array.array(KINDS[kind], [7] * 8)
            assert android.fetch("y", room) is room
            assert room.tolist() == [*numbers, 7, 7]


def test_buffers_that_cannot_take_an_output() -> None:
    android = InferenceInterface(parse("x = Placeholder(dtype=uint8)\ny = Identity(x, T=uint8)"))
    android.feed("x", b"\1\2", 2)
    android.run(["y"])
    room = bytearray(3)
    android.fetch("y", room)
    assert room == b"\1\2\0"
    for bad, problem in (
        (b"abc", "read-only"),
        ([0, 0], "cannot fetch into a list"),
        (bytearray(1), "1 elements cannot"),
    ):
        with pytest.raises(RunError, match=problem):
            android.fetch("y", bad)
    with pytest.raises(RunError, match="cannot use float32 with Tensor of type uint8"):
        android.fetch("y", array.array("f", [0, 0]))


def test_unknown_names_are_refused_at_once(android: InferenceInterface) -> None:
    for feed in (lambda: android.feed("nope:0", [1.0]), lambda: android.feed_string("nope", b"")):
        with pytest.raises(RunError, match=r"^No Operation named \[nope\] in the Graph"):
            feed()
    with pytest.raises(RunError, match=r"No Operation named \[set\] in the Graph"):
        android.run([], False, ["set"])


def test_a_tensor_that_is_fed_twice(android: InferenceInterface) -> None:
    android.feed("x", [1.0, 2.0], 1, 2)
    android.feed("x:0", [1.0, 2.0], 1, 2)
    with pytest.raises(RunError, match='Endpoint "x:0" fed more than once'):
        android.run(["y"])
    android.feed("x", [1.0, 2.0], 1, 2)
    android.run(["y"])


def test_a_failing_run_is_logged(android: InferenceInterface, caplog: pytest.LogCaptureFixture) -> None:
    android.feed("x", [1.0, 2.0, 3.0])
    with pytest.raises(RunError):
        android.run(["y", "size"])
    assert "Failed to run TensorFlow inference with inputs:[x:0], outputs:[y, size]" in caplog.text


def test_nothing_works_after_close_but_closing(android: InferenceInterface) -> None:
    android.feed("x", [1.0, 2.0], 1, 2)
    android.run(["y"], True)
    android.close()
    android.close()
    assert android.get_stat_string() == ""
    with pytest.raises(RunError, match="close\\(\\) has been called on the Graph"):
        android.feed("x", [1.0, 2.0], 1, 2)
    with pytest.raises(RunError, match="close\\(\\) has been called on the Graph"):
        android.graph_operation("y")
    with pytest.raises(RunError, match="closed Session"):
        android.run(["y"])
    with pytest.raises(RunError, match="was not provided to run"):
        android.fetch("y")


def test_a_list_of_sizes_and_a_single_name(android: InferenceInterface) -> None:
    android.feed("x", [1.0, 2.0], [1, 2])
    android.run("y")
    assert android.fetch("y").shape == (1, 2)
    android.feed("x", [1.0, 2.0], (1, 2))
    android.run(["y"], False, "y")
    with pytest.raises(RunError, match=r"buffer with 2 elements is not compatible with a Tensor with shape \[1, 3\]"):
        android.feed("x", [1.0, 2.0], [1, 3])


def test_nothing_is_cast_when_it_runs(android: InferenceInterface) -> None:
    for value in (np.zeros((1, 2)), np.zeros((1, 2), np.int32), b"\0\0"):
        android.feed("x", value, 1, 2)
        with pytest.raises(RunError, match=r"Expects arg\[0\] to be float but (double|int32|uint8) is provided"):
            android.run(["x"])
    with pytest.raises(RunError, match="not provided to run"):
        android.fetch("x")


def test_a_list_of_floats_is_not_cut_to_integers() -> None:
    android = InferenceInterface(parse("x = Placeholder(dtype=int32)\ny = Identity(x, T=int32)"))
    android.feed("x", [1, 2])
    android.run("y")
    assert android.fetch("y").tolist() == [1, 2]
    android.feed("x", [1.5, 2])
    with pytest.raises(RunError, match=r"Expects arg\[0\] to be int32 but float is provided"):
        android.run("y")


def test_feeds_and_names_that_are_none(android: InferenceInterface) -> None:
    with pytest.raises(RunError, match="feed 'x': this is no array"):
        android.feed("x", [[1.0], [1.0, 2.0]])
    for dims in (("a", 2), (1.0, 2)):
        with pytest.raises(RunError, match="a shape is a list of integers"):
            android.feed("x", np.zeros(2, np.float32), *dims)  # type: ignore[arg-type]
    with pytest.raises(RunError, match="a list of tensor names is wanted, not NoneType"):
        android.run(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", [3, io.StringIO("text"), None])
def test_what_is_no_model(model: object) -> None:
    with pytest.raises(RunError, match="a model is a path, a Graph or a file opened for reading bytes"):
        InferenceInterface(model)  # type: ignore[arg-type]


def test_a_closed_interface_is_not_entered(android: InferenceInterface) -> None:
    android.close()
    with pytest.raises(RunError, match=r"close\(\) has been called"), android:
        pass
