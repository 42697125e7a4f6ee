"""Damaged files give an error of ours or a graph; never another exception."""

from __future__ import annotations

import contextlib
import pathlib
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketgraph import formats
from pocketgraph.errors import FormatError
from pocketgraph.graph import DType, Func, Graph, Node, Shape, Tensor, const
from support import model_dir, needs_shared

FLOAT = DType.named("float")
NODES = [
    Node("x", "Placeholder", attrs={"dtype": FLOAT, "shape": Shape((None, 2))}),
    const("w", np.arange(6, dtype=np.float32).reshape(2, 3)),
    const("s", np.array([b"a", b"bc"], object)),
    Node("y", "MatMul", ["x", "w", "^s"], {"T": FLOAT, "list": (1, 2), "f": Func("g", {"a": 0.5})}, "/cpu:0"),
]
TYPED = (  # a Const of [1, 300, 5] as a list of varints
    b"\x0a\x25\x0a\x01t\x12\x05Const\x2a\x19\x0a\x05value\x12\x10\x42\x0e\x08\x03"
    b"\x12\x04\x12\x02\x08\x03\x3a\x04\x01\xac\x02\x05"
)
ENCODED = formats.to_bytes(Graph(NODES)) + TYPED + b"\x22\x02\x08\x1b"


def use(graph: Graph) -> int:
    """Touches everything that is decoded late; gives how many nodes were whole."""
    whole = 0
    for node in graph:
        try:
            for value in node.attrs.values():
                if isinstance(value, Tensor):
                    value.numpy()
            node.replace(device="/cpu:1")
            whole += 1
        except FormatError as error:
            assert node.name in str(error)  # noqa: PT017
    formats.to_bytes(graph)
    return whole


def test_the_undamaged_graph_is_whole() -> None:
    graph = formats.from_bytes(ENCODED)
    assert use(graph) == 5
    assert graph["t"].tensor.numpy().tolist() == [1, 300, 5]


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_changed_and_missing_bytes(data: st.DataObject) -> None:
    damaged = bytearray(ENCODED)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    try:
        use(formats.from_bytes(cut))
    except FormatError as error:
        assert "\n" not in str(error)  # noqa: PT017


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_random_bytes(content: bytes) -> None:
    with contextlib.suppress(FormatError):
        use(formats.from_bytes(content))


@needs_shared
@pytest.mark.parametrize(
    "name",
    [
        "vibcat",
        "faced_corrector",
        "dotnet_matmul",
        "sm_dotnet_types/model_string_test",
        "sm_rust_regression/regression_savedmodel",
        "metagraphs_scisharp",
    ],
)
def test_real_files_damaged_at_random(name: str, tmp_path: pathlib.Path) -> None:
    path = next(path for path in sorted(model_dir(name).iterdir()) if path.suffix in (".pb", ".meta", ".pbtxt"))
    content = path.read_bytes()[:200_000]
    rng = random.Random(name)
    for _ in range(40):
        damaged = bytearray(content)
        for _ in range(rng.choice((0, 1, 1, 4))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        target = tmp_path / "damaged"
        target.write_bytes(damaged[: rng.randrange(len(damaged))] if rng.random() < 0.5 else damaged)
        try:
            use(formats.load(target))
        except FormatError as error:
            assert str(target) in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("encoded", "what"),
    [
        (b"\x0a\x08\x0a\x01a\x12\x01B" + b"\x0a\x00", "corrupt at byte 2: a node has no name"),
        (b"\x0a\x06\x0a\x01a\x12\x01B\x0a\x06\x0a\x01a\x12\x01C", "node 'a': two nodes have this name"),
        (b"\x0a\x03\x12\x01B", "a node has no name"),
        (b"\x0a\x03\x0a\x01a", "a node has no op"),
        (b"\x0a\x06\x0a\x01\xff\x12\x01B", "not valid UTF-8"),
        (b"\x0a\x06\x0a\x01a\x12\x7fB", "corrupt at byte 5"),
        (b"\x0a\x7f\x0a\x01a\x12\x01B", "cut short"),
        (b"\x0b\x0c", "wire type 3"),
    ],
)
def test_faults_are_named(encoded: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=what) as caught:
        formats.from_bytes(encoded, "model.pb")
    assert str(caught.value).startswith("model.pb: ")
