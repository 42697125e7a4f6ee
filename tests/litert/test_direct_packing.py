"""Weights that are packed while they are written, to the bit as XNNPACK packs them; nobody reads holes."""

from __future__ import annotations

import errno
import mmap
import os
import pathlib
import threading
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from litert.parts import compiled_part
from pocketgraph.graph import Graph, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert import cache, cached_executable, engine, host, program_building
from pocketgraph.litert.native import c_library, watched_holes
from pocketgraph.litert.native.watched_holes import WatchedHoles
from pocketgraph.litert.packing import direct_packing, packing_order, packing_probe, weight_cache_file
from pocketgraph.litert.packing.packing_order import PackingOrder
from pocketgraph.litert.packing.packing_probe import SeenKind
from pocketgraph.litert.packing.weight_cache_file import PackedBuffer, WeightCacheFile
from pocketgraph.litert.running.packed_runner import PackedRunner
from pocketgraph.runtime.part_engines.part_engine import OfferedPart

pytestmark = pytest.mark.skipif(
    not host.engine_version().startswith(c_library.KNOWN), reason="another version of LiteRT"
)
CONVOLUTION = (
    'c = Conv2D(x, w, T=float, strides=[1,{stride},{stride},1], padding="{padding}", dilations=[1,{gap},{gap},1])'
)
POOL = 'MaxPool({source}, T=float, ksize=[1,2,2,1], strides=[1,2,2,1], padding="SAME")'
FINE = {"stride": 1, "padding": "SAME", "gap": 1}
SHAPE = (1, 9, 9, 24)
X = np.random.default_rng(2).standard_normal(SHAPE).astype(np.float32)


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (program_building, cached_executable):
        monkeypatch.setattr(module, "PACKED_FROM", 0)
    monkeypatch.setattr(direct_packing, "LEFT_OUT_FROM", 0)


def drawn(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def network(middle: str, **weights: Any) -> Graph:
    """A graph from x to y, the nodes between in text, with constants."""
    text = f"x = Placeholder(dtype=float, shape={list(SHAPE)})\n{middle}"
    return Graph([*(const(name, values) for name, values in weights.items()), *parse(text)])


def convolution(rows: int, columns: int, count: int, **options: Any) -> Graph:
    middle = CONVOLUTION.format(**{**FINE, **options})
    middle += f"\nb = BiasAdd(c, v, T=float)\nr = Relu(b, T=float)\ny = {POOL.format(source='r')}"
    return network(middle, w=drawn(rows, columns, SHAPE[3], count), v=drawn(count))


GRAPHS = {
    "window": lambda: convolution(3, 3, 64),
    "nothing after it": lambda: network(CONVOLUTION.format(**FINE).replace("c =", "y ="), w=drawn(3, 3, SHAPE[3], 32)),
    "one element, nothing after it": lambda: network(
        CONVOLUTION.format(**FINE).replace("c =", "y ="), w=drawn(1, 1, SHAPE[3], 32)
    ),
    "columns that fill no block": lambda: convolution(3, 3, 41),
    "few columns": lambda: convolution(3, 5, 3),
    "steps": lambda: convolution(3, 3, 32, stride=2),
    "no padding": lambda: convolution(5, 1, 80, padding="VALID"),
    "gaps": lambda: convolution(3, 3, 48, gap=2),
    "one element": lambda: convolution(1, 1, 100),
    "one element, steps": lambda: convolution(1, 1, 33, stride=2),
    "many columns": lambda: convolution(3, 3, 1300),
    "normalized": lambda: network(
        CONVOLUTION.format(**FINE) + "\ny = FusedBatchNormV3(c, s, v, m, n, T=float, U=float, is_training=false)",
        w=drawn(3, 3, SHAPE[3], 40), s=drawn(40), v=drawn(40), m=drawn(40), n=np.abs(drawn(40)) + 0.5,
    ),
    "depthwise": lambda: network(
        "y = DepthwiseConv2dNative(x, w, T=float, strides=[1,1,1,1], padding=\"SAME\")", w=drawn(3, 3, SHAPE[3], 1)
    ),
    "product": lambda: network(
        "f = Reshape(x, r, T=float, Tshape=int32)\ny = MatMul(f, w, T=float)",
        r=np.array([1, 81 * SHAPE[3]], np.int32), w=drawn(81 * SHAPE[3], 50),
    ),
    "product of rows": lambda: network(
        "f = Reshape(x, r, T=float, Tshape=int32)\ny = MatMul(f, w, T=float, transpose_b=true)",
        r=np.array([81, SHAPE[3]], np.int32), w=drawn(70, SHAPE[3]),
    ),
    "what LiteRT runs itself": lambda: network(
        f"{CONVOLUTION.format(**FINE)}\np = {POOL.format(source='c')}\n"
        "y = Cumsum(p, axis, T=float, Tidx=int32, exclusive=false, reverse=false)",
        w=drawn(3, 3, SHAPE[3], 32), axis=np.int32(1),
    ),
}  # fmt: skip


def compiled(folder: pathlib.Path, graph: Graph, **options: Any) -> engine.Executable:
    specs = {"x:0": (FLOAT, SHAPE)}
    return compiled_part(graph, list(graph), ["x:0"], ["y:0"], specs, cache_dir=folder, key="k", **options)


def entry_of(executable: engine.Executable) -> cache.CacheEntry:
    assert executable.kept_as is not None
    entry = cache.find(*executable.kept_as)
    assert entry is not None
    return entry


def listed(entry: cache.CacheEntry) -> tuple[bytes, WeightCacheFile]:
    content = pathlib.Path(entry.packed).read_bytes()
    return content, weight_cache_file.read(content)


def without_packing(folder: pathlib.Path, graph: Graph) -> engine.Executable:
    return compiled(folder, graph, without=[engine.DIRECT_PACKING])


@pytest.mark.parametrize("name", GRAPHS)
def test_weights_are_packed_as_xnnpack_packs_them(tmp_path: pathlib.Path, name: str) -> None:
    ours, theirs = compiled(tmp_path / "ours", GRAPHS[name]()), without_packing(tmp_path / "theirs", GRAPHS[name]())
    assert entry_of(ours).is_weightless
    assert not entry_of(theirs).is_weightless
    (content, found), (expected, right) = listed(entry_of(ours)), listed(entry_of(theirs))
    assert [buffer[:3] for buffer in found.buffers] == [buffer[:3] for buffer in right.buffers]
    assert set(found.fingerprints) == set(right.fingerprints)
    compared = 0
    for buffer, other in zip(found.buffers, right.buffers, strict=True):
        assert buffer.size == other.size
        mine, wanted = (
            np.frombuffer(text[each.base + at.offset :][: at.size], np.float32)
            for text, each, at in ((content, found, buffer), (expected, right, other))
        )
        meant = mine != 0  # XNNPACK leaves in blocks that are not full whatever was there
        np.testing.assert_array_equal(mine[meant], wanted[meant])
        compared += int(meant.sum())
    assert compared >= sum(value.size for value in weights_of(GRAPHS[name]()))
    np.testing.assert_array_equal(ours.run([X])[0], theirs.run([X])[0])
    ours.close()
    theirs.close()


def weights_of(graph: Graph) -> Sequence[Any]:
    return [node.attrs["value"].numpy() for node in graph if node.name == "w"]


ROWS = "f = Reshape(x, r, T=float, Tshape=int32)"
ROWS_BY_WEIGHTS = "MatMul(f, w, T=float, transpose_b=true)"
SHARED = {
    "added before": f"{ROWS}\na = AddV2(f, w, T=float)\ny = {ROWS_BY_WEIGHTS.replace('f,', 'a,')}",
    "multiplied after": f"{ROWS}\nm = {ROWS_BY_WEIGHTS}\nv = Mul(f, w, T=float)\n"
    "s = Sum(v, ax, T=float, Tidx=int32, keep_dims=true)\ny = AddV2(m, s, T=float)",
    "looked up": f"{ROWS}\nm = {ROWS_BY_WEIGHTS}\nt = Sum(m, ax, T=float, Tidx=int32, keep_dims=false)\n"
    "p = Cast(t, SrcT=float, DstT=int32)\ni = FloorMod(p, n, T=int32)\n"
    "g = GatherV2(w, i, z, Tparams=float, Tindices=int32, Taxis=int32)\nh = MatMul(f, w, T=float, transpose_b=true)\n"
    "k = MatMul(h, w, T=float)\ny = AddV2(k, g, T=float)",
    "by another layer, other biases": f"{ROWS}\nm = {ROWS_BY_WEIGHTS}\na = BiasAdd(m, b1, T=float)\n"
    "c = MatMul(f, w, T=float, transpose_b=true)\nd = BiasAdd(c, b2, T=float)\ny = Mul(a, d, T=float)",
}


@pytest.mark.parametrize("name", SHARED)
def test_weights_that_something_else_reads_as_well(tmp_path: pathlib.Path, name: str) -> None:
    """XNNPACK reads constants of elementwise operations at each run, from the model file."""
    rows = np.array([81, SHAPE[3]], np.int32)
    integers = {"ax": np.array([0, 1], np.int32), "n": np.int32(81), "z": np.int32(0)}
    graph = network(SHARED[name], w=drawn(81, SHAPE[3]), r=rows, b1=drawn(81), b2=drawn(81) + 1, **integers)
    ours, theirs = compiled(tmp_path / "ours", graph), without_packing(tmp_path / "theirs", graph)
    np.testing.assert_allclose(ours.run([X])[0], theirs.run([X])[0], rtol=1e-6)
    ours.close()
    theirs.close()


def test_a_later_process_finds_them(tmp_path: pathlib.Path) -> None:
    first = compiled(tmp_path, convolution(3, 3, 64))
    expected = first.run([X])[0]
    first.close()
    found = engine.lookup("k", ["x:0"], ["y:0"], {"x:0": (FLOAT, SHAPE)}, cache_dir=tmp_path)
    assert found is not None
    np.testing.assert_array_equal(found.run([X])[0], expected)
    found.close()


def test_the_model_file_takes_no_room_for_them(tmp_path: pathlib.Path) -> None:
    made = compiled(tmp_path, convolution(3, 3, 1300))
    status = pathlib.Path(entry_of(made).model).stat()
    assert status.st_size > 3 * 3 * SHAPE[3] * 1300 * 4
    assert status.st_blocks * 512 < status.st_size / 4
    made.close()


def test_other_engines_get_whole_files(tmp_path: pathlib.Path) -> None:
    compiled(tmp_path, convolution(3, 3, 64)).close()
    found = engine.lookup("k", ["x:0"], ["y:0"], {"x:0": (FLOAT, SHAPE)}, cache_dir=tmp_path, whole=True)
    assert found is None
    made = compiled(tmp_path, convolution(3, 3, 64), whole=True)
    assert not entry_of(made).is_weightless
    made.close()


@pytest.mark.parametrize("name", ["window", "one element", "product", "what LiteRT runs itself"])
def test_where_xnnpack_looks_for_others_it_packs_them_itself(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    right = without_packing(tmp_path / "right", GRAPHS[name]())
    monkeypatch.setattr(SeenKind, "algorithm_of", lambda seen, channels, columns: 12345)
    made = compiled(tmp_path / "wrong", GRAPHS[name]())
    assert not entry_of(made).is_weightless
    np.testing.assert_array_equal(made.run([X])[0], right.run([X])[0])
    made.close()
    right.close()


def test_what_xnnpack_does_not_run_is_found_to_read_weights(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose weights LiteRT's own operators read: here it is opened without XNNPACK's packed ones."""
    made = compiled(tmp_path, convolution(3, 3, 64))
    entry = entry_of(made)
    made.close()
    empty = entry.replace(packed=str(tmp_path / "packed anew.xnn"))
    with pytest.raises(cached_executable.RunError, match="packed weights"):
        cached_executable.runner_for(empty, 1)


def hole_of(entry: cache.CacheEntry) -> int:
    start: int = entry.about[cache.WEIGHTLESS][1]
    return start


def test_holes_that_are_read_are_seen(tmp_path: pathlib.Path) -> None:
    made = compiled(tmp_path, convolution(3, 3, 64))
    entry = entry_of(made)
    watched = WatchedHoles(entry.model, hole_of(entry))
    assert not watched.are_read()
    with open(entry.model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        assert content[hole_of(entry)] == 0
    assert watched.are_read()
    made.close()


@pytest.mark.parametrize("said", [0, 1])
def test_a_system_that_does_not_tell_is_found_out(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, said: int
) -> None:
    """Where files are in memory at all times, none of their pages counts as read; where one may not ask, all do."""
    assert watched_holes.tells(str(tmp_path))
    made = compiled(tmp_path / "told", convolution(3, 3, 64))
    entry = entry_of(made)
    assert entry.is_weightless
    made.close()
    answers = lambda content: np.full(len(content) // mmap.PAGESIZE, said, np.uint8)  # noqa: E731
    monkeypatch.setattr(watched_holes, "_resident", answers)
    assert not watched_holes.tells(str(tmp_path))
    with pytest.raises((OSError, cached_executable.RunError)):
        cached_executable.runner_for(entry, 1)
    again = compiled(tmp_path / "silent", convolution(3, 3, 64))
    assert not entry_of(again).is_weightless
    again.close()


def test_a_file_that_was_exchanged_meanwhile_tells_nothing(tmp_path: pathlib.Path) -> None:
    made = compiled(tmp_path, convolution(3, 3, 64))
    entry = entry_of(made)
    watched = WatchedHoles(entry.model, hole_of(entry))
    other = tmp_path / "other"
    with open(other, "wb") as file:
        file.truncate(pathlib.Path(entry.model).stat().st_size)
    other.replace(entry.model)
    with pytest.raises(OSError, match="written anew"):
        watched.are_read()
    made.close()


def test_holes_that_are_read_at_the_first_run_are_seen(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where XNNPACK takes fewer operations in a later process than it took when the part was made."""
    made = compiled(tmp_path, GRAPHS["what LiteRT runs itself"]())
    entry = entry_of(made)
    assert entry.is_weightless
    made.close()
    opened = cached_executable.runner_for(entry, 1)
    assert isinstance(opened, PackedRunner)
    assert not opened.is_delegated
    run = PackedRunner.run

    def reading(runner: PackedRunner, inputs: Sequence[Any]) -> list[Any]:
        with open(entry.model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            assert content[hole_of(entry)] == 0
        return run(runner, inputs)

    monkeypatch.setattr(PackedRunner, "run", reading)
    for _ in range(2):
        with pytest.raises(cached_executable.RunError, match="packed weights"):
            opened.run([X])
    opened.close()


def test_a_whole_file_stays_whole_when_another_process_writes_one_with_holes(tmp_path: pathlib.Path) -> None:
    whole = compiled(tmp_path, convolution(3, 3, 64), whole=True)
    entry = entry_of(whole)
    before = pathlib.Path(entry.model).read_bytes()
    whole.close()
    pathlib.Path(entry.model).with_suffix(".json").unlink()  # as the other process found it
    compiled(tmp_path, convolution(3, 3, 64)).close()
    assert pathlib.Path(entry.model).read_bytes() == before
    found = cache.find(str(tmp_path), pathlib.Path(entry.model).stem)
    assert found is not None
    assert found.is_weightless
    with pytest.raises(cached_executable.RunError, match="written anew"):
        OfferedPart(found).file  # noqa: B018


def test_another_kind_of_processor_packs_its_own(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled(tmp_path, convolution(3, 3, 64))
    expected = first.run([X])[0]
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(cache, "cpu", lambda: "another")
        assert engine.lookup("k", ["x:0"], ["y:0"], {"x:0": (FLOAT, SHAPE)}, cache_dir=tmp_path) is None
        second = compiled(tmp_path, convolution(3, 3, 64))
        np.testing.assert_array_equal(second.run([X])[0], expected)
    found = engine.lookup("k", ["x:0"], ["y:0"], {"x:0": (FLOAT, SHAPE)}, cache_dir=tmp_path)
    assert found is not None
    for each in (first, second, found):
        each.close()


@pytest.mark.parametrize("damage", ["packed weights", "model", "size", "no packed weights"])
def test_damaged_files_are_made_anew(tmp_path: pathlib.Path, damage: str) -> None:
    first = compiled(tmp_path, convolution(3, 3, 64))
    expected, entry = first.run([X])[0], entry_of(first)
    first.close()
    path = pathlib.Path(entry.model if damage in ("model", "size") else entry.packed)
    content = bytearray(path.read_bytes())
    if damage == "size":
        content = content[: len(content) // 2]
    else:
        content[300] ^= 1
    path.unlink()
    if damage != "no packed weights":
        path.write_bytes(content)
        path.chmod(0o600)
    assert engine.lookup("k", ["x:0"], ["y:0"], {"x:0": (FLOAT, SHAPE)}, cache_dir=tmp_path) is None
    again = compiled(tmp_path, convolution(3, 3, 64))
    np.testing.assert_array_equal(again.run([X])[0], expected)
    again.close()


@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize("factors", [None, np.array([2, 3, 5, 7, 11], np.float32)])
def test_an_order(width: int, factors: Any) -> None:
    matrix, bias = np.arange(1, 11, dtype=np.float32).reshape(2, 5), -np.arange(1, 6, dtype=np.float32)
    order = PackingOrder(width)
    packed = np.full(order.size(2, 5) // 4, np.nan, np.float32)
    order.pack(matrix, bias, factors, packed)
    whole = np.zeros((3, -(-5 // width) * width), np.float32)
    whole[:, :5] = [bias, *(matrix * (1 if factors is None else factors))]
    blocks = [whole[:, start : start + width].ravel() for start in range(0, whole.shape[1], width)]
    expected = np.concatenate(blocks)
    np.testing.assert_array_equal(packed[: expected.size], expected)
    assert not packed[expected.size :].any()


@pytest.mark.parametrize(("is_x86", "size"), [(True, 832), (False, 800)])
def test_packed_weights_are_as_large_as_this_processors(is_x86: bool, size: int, monkeypatch: Any) -> None:
    """As LiteRT 2.3 packs a depthwise window of 2x2 on 33 channels on either."""
    monkeypatch.setattr(packing_order, "is_x86", lambda: is_x86)
    assert PackingOrder(8).size(4, 33) == size


def test_a_file_is_read_as_it_was_written() -> None:
    buffers = weight_cache_file.placed([PackedBuffer(7, 1, 2, 0, 64), PackedBuffer(2**32 - 5, 3, 2**64 - 1, 0, 200)])
    packed = [bytes(64), bytes(range(100)), bytes(100)]
    content = b"".join(bytes(piece) for piece in weight_cache_file.pieces(buffers, [5, 2**63], iter(packed)))
    found = weight_cache_file.read(content)
    assert found == WeightCacheFile((5, 2**63), tuple(buffers), 128)
    assert content[128 + buffers[1].offset :][:100] == bytes(range(100))
    assert all(buffer.offset % 128 == 0 for buffer in found.buffers)
    for end in range(0, len(content), 7):
        with pytest.raises(ValueError, match="packed"):
            weight_cache_file.read(content[:end])


def test_two_threads_write_the_same_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    middle = "\n".join(
        f'c{n} = Conv2D({"x" if n == 0 else f"c{n - 1}"}, w{n}, T=float, strides=[1,1,1,1], padding="SAME")'
        for n in range(3)
    )
    weights = {f"w{n}": drawn(3, 3, SHAPE[3], SHAPE[3]) for n in range(3)}
    graph = network(f"{middle}\ny = Relu(c2, T=float)", **weights)
    written, cut = [], []
    sections_of = direct_packing.PackedProgram.sections

    def noted(*args: Any, **named: Any) -> Any:
        cut.append(sections_of(*args, **named))
        return cut[-1]

    monkeypatch.setattr(direct_packing.PackedProgram, "sections", noted)
    for worth in (1 << 40, 0):
        monkeypatch.setattr(direct_packing, "WORTH_A_THREAD", worth)
        folder = tmp_path / str(worth)
        part = compiled(folder, graph)
        (packed,), (mark,) = folder.glob("*.xnn"), folder.glob("*.xnn.sum")
        assert cache.unsealed(str(mark))[cache.SUM] == cache.checksum(str(packed))
        written.append((packed.read_bytes(), part.run([X])[0].tobytes()))
        part.close()
    assert [len(sections) for sections in cut] == [1, 2]
    assert written[0] == written[1]


def test_a_failing_second_thread_leaves_no_holes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_packing, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(cache, "_warned", [])
    layer = 'Conv2D({source}, {weights}, T=float, strides=[1,1,1,1], padding="SAME")'
    first, second = layer.format(source="x", weights="w"), layer.format(source="c", weights="v")
    weights = drawn(3, 3, SHAPE[3], SHAPE[3])
    graph = network(f"c = {first}\nd = {second}\ny = Relu(d, T=float)", w=weights, v=weights[::-1].copy())
    here = threading.get_ident()
    write = os.pwrite

    def full(*args: Any) -> int:
        if threading.get_ident() != here:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*args)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        part = compiled(tmp_path, graph)
    assert not list(tmp_path.glob("*weightless*"))
    assert not list((tmp_path / "ours").glob("*.part"))
    whole = compiled(tmp_path / "whole", graph, without=[engine.DIRECT_PACKING])
    np.testing.assert_array_equal(part.run([X])[0], whole.run([X])[0])
    for each in (part, whole):
        each.close()


@pytest.mark.parametrize("module", [direct_packing, packing_probe])
def test_without_room_nothing_is_tried(
    module: types.ModuleType, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def full(path: str, size: int, spare: int) -> str:
        assert not os.path.exists(path)
        asked.append(2 * size + spare)
        return "the disk is full"

    monkeypatch.setattr(module, "room_for", full)  # XNNPACK, and a hole that is read in memory, would end the process
    graph = convolution(3, 3, 64)
    plain, tried = without_packing(tmp_path / "theirs", graph), compiled(tmp_path / "ours", graph)
    assert not entry_of(tried).is_weightless
    np.testing.assert_array_equal(tried.run([X])[0], plain.run([X])[0])
    for each in (plain, tried):
        each.close()
    assert asked[0] >= (2 * watched_holes.PAGE if module is direct_packing else 2 * 4 * 64 * 9 * 3)
    assert not list((tmp_path / "ours").glob("*.part"))
