"""Memory-mapped packages: one that TensorFlow's writer made, ours beside it, and damaged ones."""

from __future__ import annotations

import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest

from pocketgraph import Session, formats
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats import memmapped
from pocketgraph.formats.memmapped_writer import region_name, save_memmapped
from pocketgraph.formats.protos import message
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor, const
from pocketgraph.protobuf import wire

PACKAGES = pathlib.Path(__file__).parent.parent / "fixtures" / "packages"
MIN_SIZE = 30  # with which the fixture was made


def parts(path: pathlib.Path) -> tuple[bytes, bytes, bytes]:
    """A package's regions with their padding, its GraphDef, its directory with the offset."""
    data = path.read_bytes()
    (directory,) = struct.unpack("<Q", data[-8:])
    graph = memmapped.regions(data, "p")[memmapped.GRAPH]
    return data[: graph.start], data[graph.start : graph.stop], data[directory:]


def package(tmp_path: pathlib.Path, elements: list[bytes], body: bytes = b"\0" * 64) -> pathlib.Path:
    """A package whose directory says what we want."""
    path = tmp_path / "forged.mmap"
    directory = b"".join(wire.bytes_field(1, element) for element in elements)
    path.write_bytes(body + directory + struct.pack("<Q", len(body)))
    return path


def element(offset: int, name: str, length: int = 0) -> bytes:
    return wire.number_field(1, offset) + wire.bytes_field(2, name) + (wire.number_field(3, length) if length else b"")


def test_the_package_is_that_of_tensorflow(tmp_path: pathlib.Path) -> None:
    """Regions and directory byte for byte; the GraphDef as a message, whose maps have no order."""
    assert save_memmapped(formats.load(PACKAGES / "graph.pb"), tmp_path / "ours.mmap", MIN_SIZE) == 4
    ours, theirs = parts(tmp_path / "ours.mmap"), parts(PACKAGES / "graph.mmap")
    assert ours[0] == theirs[0]
    assert ours[2] == theirs[2]
    graph_def = message("tensorflow.GraphDef")
    assert graph_def.FromString(ours[1]) == graph_def.FromString(theirs[1])


def test_reading_gives_the_graph_it_was_made_of(tmp_path: pathlib.Path) -> None:
    before, after = formats.load(PACKAGES / "graph.pb"), formats.load(PACKAGES / "graph.mmap")
    assert list(after.nodes) == list(before.nodes)
    for old, new in zip(before, after, strict=True):
        assert (new.op, new.inputs, new.device) == (old.op, old.inputs, old.device)
        if new.op == "Const":
            assert new.tensor.same_values(old.tensor)
    save_memmapped(after, tmp_path / "again.mmap", MIN_SIZE)
    assert parts(tmp_path / "again.mmap")[0] == parts(PACKAGES / "graph.mmap")[0]
    formats.save(after, tmp_path / "plain.pb")
    assert formats.load(tmp_path / "plain.pb")["layer/w"].tensor.same_values(before["layer/w"].tensor)


@pytest.mark.parametrize("engine", ["reference", None])
def test_it_runs(engine: str | None) -> None:
    x = np.random.default_rng(0).standard_normal((3, 16), np.float32)
    weights = formats.load(PACKAGES / "graph.pb")["layer/w"].tensor.numpy()
    with Session(formats.load(PACKAGES / "graph.mmap"), engine=engine) as session:
        [y] = session.run(["y:0"], {"x:0": x})
    np.testing.assert_allclose(y, x @ weights, rtol=1e-5, atol=1e-5)


def test_region_names() -> None:
    taken: set[str] = set()
    for node in ("a/b", "a_b", "a-b", "ö", "x.y"):
        taken.add(region_name(node, taken))
    assert taken == {memmapped.PREFIX + name for name in ("a_b", "a_b_", "a_b__", "__", "x.y")}


def test_regions_begin_at_multiples_of_64(tmp_path: pathlib.Path) -> None:
    nodes = [const(f"c{size}", np.arange(size, dtype=np.uint8)) for size in (1, 63, 64, 65, 200)]
    save_memmapped(Graph(nodes), tmp_path / "p", 1)
    data = (tmp_path / "p").read_bytes()
    found = memmapped.regions(data, "p")
    assert [r.start % 64 for name, r in found.items() if name != memmapped.GRAPH] == [0] * 5
    assert [r.stop - r.start for name, r in found.items() if name != memmapped.GRAPH] == [1, 63, 64, 65, 200]


def test_a_directory_without_lengths(tmp_path: pathlib.Path) -> None:
    """As TensorFlow before 2.4 may have written it: a region ends where the next begins."""
    save_memmapped(formats.load(PACKAGES / "graph.pb"), tmp_path / "p", MIN_SIZE)
    data = (tmp_path / "p").read_bytes()
    table = memmapped.regions(data, "p")
    end = table[memmapped.GRAPH].stop
    directory = b"".join(wire.bytes_field(1, element(r.start, name)) for name, r in table.items())
    (tmp_path / "old").write_bytes(data[:end] + directory + struct.pack("<Q", end))
    assert formats.load(tmp_path / "old")["half"].tensor.numpy().tolist() == list(range(77))


@pytest.mark.parametrize(
    ("elements", "what"),
    [
        ([element(64, memmapped.GRAPH)], "Invalid offset of internal component"),
        ([element(8, memmapped.PREFIX + "a"), element(8, memmapped.GRAPH)], "Invalid offset of internal component"),
        ([element(0, memmapped.GRAPH), element(8, memmapped.GRAPH)], "Duplicate name of internal component"),
        ([element(0, memmapped.PREFIX + "a")], r"Region memmapped_package://\. is not found"),
        ([element(1 << 60, memmapped.GRAPH)], "Invalid offset of internal component"),
        ([b"\xff"], "Can't parse its internal directory"),
    ],
)
def test_wrong_directories(tmp_path: pathlib.Path, elements: list[bytes], what: str) -> None:
    path = package(tmp_path, elements)
    with pytest.raises(FormatError, match=what) as caught:
        memmapped.read(path.read_bytes(), str(path))
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(("data", "what"), [(b"12345678", "package size"), (b"\xff" * 20, "directory offset")])
def test_what_is_no_package(data: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=f"Corrupted memmapped model file: Invalid {what}"):
        memmapped.regions(data, "p")


@pytest.mark.parametrize(
    ("attrs", "what"),
    [
        ({"shape": Shape((40,))}, r"wrong length \(64\) when allocating 160"),
        ({"shape": Shape((1 << 40, 1 << 20))}, "wrong length"),
        ({"shape": Shape((None,))}, r"has the shape \[\?\]"),
        ({"dtype": DType.named("string")}, "string is not currently supported for ImmutableConstOp"),
        ({"memory_region_name": b"memmapped_package://other"}, "Region memmapped_package://other is not found"),
        ({"dtype": 1}, "lacks its type, its shape or its region's name"),
    ],
)
def test_nodes_that_lie_about_their_region(tmp_path: pathlib.Path, attrs: dict[str, object], what: str) -> None:
    good = {"dtype": DType.named("float"), "shape": Shape((16,)), "memory_region_name": b"memmapped_package://w"}
    graph = formats.to_bytes(Graph([Node("w", "ImmutableConst", attrs={**good, **attrs})]))  # type: ignore[dict-item]
    elements = [element(0, memmapped.PREFIX + "w"), element(64, memmapped.GRAPH)]
    path = package(tmp_path, elements, b"\0" * 64 + graph)
    with pytest.raises(FormatError, match=what) as caught:
        _ = formats.load(path)["w"].tensor
    assert "node 'w'" in str(caught.value)


def test_a_node_that_names_a_file_does_not_open_it(tmp_path: pathlib.Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"x" * 64)
    attrs = {"dtype": DType.named("float"), "shape": Shape((16,)), "memory_region_name": str(secret).encode()}
    formats.save(
        Graph([Node("w", "ImmutableConst", attrs=attrs), const("c", np.arange(9))]), tmp_path / "p", form="memmapped"
    )
    graph = formats.load(tmp_path / "p")
    assert graph["w"].op == "ImmutableConst"
    with pytest.raises(Exception, match="is not loaded"):
        Session(graph).run(["w:0"], {})


def test_the_smallest_size_is_positive(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="min_conversion_tensor_size must be > 0"):
        save_memmapped(Graph([const("c", 1.0)]), tmp_path / "p", 0)
    assert not (tmp_path / "p").exists()


def test_a_const_whose_value_has_another_type(tmp_path: pathlib.Path) -> None:
    node = Node("c", "Const", attrs={"dtype": DType.named("float"), "value": Tensor.from_numpy(np.arange(9000))})
    with pytest.raises(FormatError, match="Cannot parse tensor from proto"):
        save_memmapped(Graph([node]), tmp_path / "p")


MEASURE = """
import os, sys
import numpy as np, pocketgraph
from pocketgraph import Session
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
small, path = sys.argv[1:]
Session(pocketgraph.load(small), engine="reference").run(["y:0"], {"x:0": np.ones((1, 64), "f4")})
before = resident()
graph = pocketgraph.load(path)
tensors = [node.tensor for node in graph if node.op == "Const"]
print(resident() - before)
Session(graph, engine="reference").run(["y:0"], {"x:0": np.ones((1, 4096), "f4")})
shared = private = 0
inside = False
for line in open("/proc/self/smaps"):
    if line[0] in "0123456789abcdef" and "-" in line.split()[0]:
        inside = path in line
    elif inside and line.startswith(("Shared_Clean", "Private_Clean")):
        shared += int(line.split()[1])
    elif inside and line.startswith(("Private_Dirty", "Shared_Dirty")):
        private += int(line.split()[1])
print(shared * 1024, private * 1024, flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_weights_stay_in_the_mapping(tmp_path: pathlib.Path) -> None:
    """Loading takes less than 15 % of the file, and what a run touches is the file's own pages, never copied."""

    def made(side: int) -> pathlib.Path:
        weights = np.full((side, side), 0.5, np.float32)
        x = Node("x", "Placeholder", attrs={"dtype": DType.named("float"), "shape": Shape((1, side))})
        product = {"T": DType.named("float"), "transpose_a": False, "transpose_b": False}
        path = tmp_path / f"{side}.mmap"
        formats.save(Graph([x, const("w", weights), Node("y", "MatMul", ["x", "w"], product)]), path, form="memmapped")
        return path

    small, large = made(64), made(4096)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(small), str(large)], input="\n", capture_output=True, text=True, check=True
    )
    grown, mapped = done.stdout.splitlines()
    size = large.stat().st_size
    clean, dirty = map(int, mapped.split())
    assert int(grown) < 0.15 * size
    assert dirty == 0
    assert clean > 0.9 * size
