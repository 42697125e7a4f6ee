"""What may take how much memory: refused before it is taken, with a limit and without, by every kernel."""

from __future__ import annotations

import functools
import pathlib
import zlib
from typing import Any

import numpy as np
import pytest

from kernels.cases import FAMILIES, cases
from pocketgraph import budgets
from pocketgraph.budgets import limits
from pocketgraph.errors import RunError
from pocketgraph.formats import load
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.registry import KERNELS, evaluate
from pocketgraph.runtime import Session

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"

MEGABYTE = 1 << 20

SMALL_GROWTH = {
    "at most some tens of bytes for each element of an input": """
        AdjustContrast ApproxTopK ArgMax ArgMin AsString BroadcastGradientArgs CTCGreedyDecoder DecodeWav
        DenseCountSparseOutput DenseToDenseSetOperation DenseToSparseSetOperation Dequantize EncodeBase64 Fingerprint
        FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 HistogramSummary IsotonicRegression ListDiff Lu
        QuantizedBiasAdd RaggedCountSparseOutput RaggedTensorToSparse SerializeSparse SerializeTensor
        SkipGramGenerateCandidates SparseCountSparseOutput SparseReshape SparseSplit StringToHashBucketFast
        StringToNumber Svd TopKV2 UnicodeDecode UnicodeDecodeWithOffsets UnicodeTranscode Unique UniqueV2
        UniqueWithCounts UniqueWithCountsV2 UnravelIndex _TensorToHashBucketFast""",
    "a few bytes besides what goes in": """
        DeviceIndex EncodeWav L2Loss Rank SampleDistortedBoundingBox SampleDistortedBoundingBoxV2 Shape ShapeN
        ShardedFilename ShardedFilespec Size StatelessRandomGetAlg StatelessRandomGetKeyCounter
        StatelessRandomGetKeyCounterAlg StringFormat ToBool""",
    "grow only where an axis of no elements becomes one of one": "EuclideanNorm Max Mean Min Prod Sum",
    "what is small is made at once, what is not is looked at": """
        Cast Gather GatherNd GatherV2 ParseExample ParseExampleV2 ParseSequenceExample ParseSequenceExampleV2
        RaggedCross SparseFillEmptyRows StaticRegexReplace StringNGrams Where""",
}
BOUNDED = {op: why for why, ops in SMALL_GROWTH.items() for op in ops.split()}
"""Not a trait: why an op need not ask before it makes more than goes in (some of its goldens do)."""


@functools.cache
def growing() -> list[Any]:
    """The goldens whose results are larger than their inputs."""

    def size(values: tuple[np.ndarray[Any, Any], ...]) -> int:
        return sum(sum(map(len, v.ravel().tolist())) if v.dtype == object else v.nbytes for v in values)

    found = (case for family in FAMILIES for case in cases(family) if case.node.op in KERNELS)
    return [case for case in found if size(case.expected) > size(case.inputs)]


def test_an_op_that_makes_more_than_goes_in_asks_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from pocketgraph.kernels.math import arithmetic, comparison

    for module in (arithmetic, comparison):
        monkeypatch.setattr(module, "LARGE", 0)  # small operands are not looked at
    silent: set[str] = set()
    for case in growing():
        try:
            with limits(memory=0), np.errstate(all="ignore"):
                evaluate(case.node, case.inputs)
        except RunError as error:
            if "out of memory" in str(error):
                continue
        silent.add(case.node.op)
    assert len(growing()) > 1_400
    assert not silent - BOUNDED.keys()
    assert not BOUNDED.keys() - silent, "these need no reason any more"


def texts(*items: bytes) -> np.ndarray[Any, Any]:
    made = np.empty(len(items), object)
    made[:] = items
    return made


def doubling(count: int) -> str:
    lines = ["x = Placeholder(dtype=float)", "axis = Const(int32 0)"]
    for i in range(count):
        before = f"c{i - 1}" if i else "x"
        lines.append(f"c{i} = ConcatV2({before}, {before}, axis, N=2, T=float, Tidx=int32)")
    return "\n".join([*lines, f"y = Neg(c{count - 1}, T=float)"])


ENORMOUS: list[tuple[str, str, dict[str, Any]]] = [
    ("DecodeCompressed", 'x = Placeholder(dtype=string)\ny = DecodeCompressed(x, compression_type="ZLIB")',
     {"x": texts(zlib.compress(bytes(120 * MEGABYTE)))}),
    ("AsString", "x = Placeholder(dtype=float)\ny = AsString(x, T=float, precision=2000000000)",
     {"x": np.ones(2, "f")}),
    ("AsString", "x = Placeholder(dtype=int32)\ny = AsString(x, T=int32, width=2000000000)", {"x": np.ones(2, "i")}),
    ("ConcatV2", doubling(40), {"x": np.ones(16, "f")}),
    ("Pack", "x = Placeholder(dtype=float)\ny = Pack(" + ", ".join(["x"] * 64) + ", N=64, T=float)",
     {"x": np.ones(2 * MEGABYTE, "f")}),
    ("Mul", "x = Placeholder(dtype=float)\nz = Placeholder(dtype=float)\ny = Mul(x, z, T=float)",
     {"x": np.ones((100_000, 1), "f"), "z": np.ones((1, 200_000), "f")}),
    ("Einsum", 'x = Placeholder(dtype=float)\ny = Einsum(x, x, N=2, T=float, equation="i,j->ij")',
     {"x": np.ones(100_000, "f")}),
    ("Einsum", 'x = Placeholder(dtype=float)\ny = Einsum(x, x, N=2, T=float, equation="...a,b...->...ab")',
     {"x": np.ones((20_000, 20_000), np.float16)[:2000, :2000].astype("f")}),
    ("Tile", "x = Placeholder(dtype=float)\nm = Const(int32 [100000, 100000])\n"
     "y = Tile(x, m, T=float, Tmultiples=int32)", {"x": np.ones((2, 2), "f")}),
    ("StringJoin", "x = Placeholder(dtype=string)\nz = Placeholder(dtype=string)\ny = StringJoin(x, z, N=2)",
     {"x": texts(*[b""] * 40_000), "z": np.array(b"a" * MEGABYTE, object)}),
    ("ReduceJoin", 'x = Placeholder(dtype=string)\na = Const(int32 0)\ny = ReduceJoin(x, a, separator="' + "-" * 9_999
     + '")', {"x": texts(*[b""] * 40_000)}),
    ("StringNGrams", 'x = Placeholder(dtype=string)\ns = Placeholder(dtype=int64)\n'
     'y = StringNGrams(x, s, Tsplits=int64, separator=" ", ngram_widths=[9000], left_pad="", right_pad="", pad_width=0,'
     " preserve_short_sequences=false)", {"x": texts(*[b"abcdefgh"] * 18_000), "s": np.array([0, 18_000])}),
    ("StringSplit", 'x = Placeholder(dtype=string)\nd = Const(string "")\ny = StringSplit(x, d)',
     {"x": texts(b"a" * 20 * MEGABYTE)}),
    ("RegexReplace", 'x = Placeholder(dtype=string)\ny = StaticRegexReplace(x, pattern="a", rewrite="' + "b" * 9_999
     + '")', {"x": texts(b"a" * 200_000)}),
    ("SparseFillEmptyRows", "i = Placeholder(dtype=int64)\nv = Placeholder(dtype=float)\n"
     "s = Const(int64 [100000000000, 1])\nd = Const(float 0.0)\ny = SparseFillEmptyRows(i, v, s, d, T=float)",
     {"i": np.zeros((1, 2), np.int64), "v": np.ones(1, "f")}),
    ("TensorArrayGatherV3", "n = Const(int32 2000000000)\nx = Placeholder(dtype=float)\n"
     "a = TensorArrayV3(n, dtype=float, dynamic_size=true, element_shape=[1000])\nr = Range(x0, n, x1, Tidx=int32)\n"
     "x0 = Const(int32 0)\nx1 = Const(int32 1000000)\n"
     "g = TensorArrayConcatV3(a, a:1, dtype=float)\ny = Add(g, x, T=float)", {"x": np.ones(1, "f")}),
    ("ResizeBilinear", "x = Placeholder(dtype=float)\ns = Const(int32 [60000, 60000])\n"
     "y = ResizeBilinear(x, s, T=float)",
     {"x": np.ones((1, 2, 2, 3), "f")}),
    ("QuantizedMatMul", "x = Placeholder(dtype=quint8)\nz = Placeholder(dtype=quint8)\nl = Const(float 0.0)\n"
     "h = Const(float 1.0)\n"
     "y = QuantizedMatMul(x, z, l, h, l, h, T1=quint8, T2=quint8, Toutput=qint32)",
     {"x": np.ones((90_000, 1), np.uint8), "z": np.ones((1, 90_000), np.uint8)}),
    ("Svd", "x = Placeholder(dtype=float)\ny = Svd(x, T=float, full_matrices=true, compute_uv=true)",
     {"x": np.ones((60_000, 1), "f")}),
    ("SelectV2", "c = Placeholder(dtype=bool)\nx = Placeholder(dtype=float)\ny = SelectV2(c, x, x, T=float)",
     {"c": np.ones((90_000, 1), bool), "x": np.ones((1, 90_000), "f")}),
    ("OneHot", "x = Placeholder(dtype=int32)\nd = Const(int32 2000000000)\na = Const(float 1.0)\nb = Const(float 0.0)\n"
     "y = OneHot(x, d, a, b, T=float, TI=int32)", {"x": np.zeros(9, "i")}),
    ("Bincount", "x = Placeholder(dtype=int32)\nn = Const(int32 2000000000)\nw = Const(float[0] 0)\n"
     "y = Bincount(x, n, w, T=float)", {"x": np.zeros(9, "i")}),
    ("RandomUniform", "x = Placeholder(dtype=int32)\ny = RandomUniform(x, T=int32, dtype=float)",
     {"x": np.array([100_000, 100_000], "i")}),
]  # fmt: skip


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 512 MB of memory."""
    monkeypatch.setattr(budgets, "share_of_memory", lambda: 128 * MEGABYTE)


@pytest.mark.usefixtures("small_machine")
@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize(("op", "nodes", "feeds"), ENORMOUS, ids=[op for op, _, _ in ENORMOUS])
def test_without_a_limit_no_op_takes_more_than_a_share_of_the_machine(
    op: str, nodes: str, feeds: dict[str, Any], engine: str | None
) -> None:
    session = Session(parse(nodes), engine=engine, cache_dir=None)
    with pytest.raises(
        RunError,
        match=r"^node '.*': .* would take .* a quarter of the machine's memory, and at most 4 GiB, is 134,217,728",
    ):
        session.run("y", feeds)


@pytest.mark.parametrize(("op", "nodes", "feeds"), ENORMOUS, ids=[op for op, _, _ in ENORMOUS])
def test_a_limit_holds_for_every_kernel(op: str, nodes: str, feeds: dict[str, Any]) -> None:
    session = Session(parse(nodes), memory_limit=200 * MEGABYTE, cache_dir=None)
    with pytest.raises(RunError, match=r"^node '.*': out of memory: .* pass a larger memory_limit"):
        session.run("y", feeds)


def test_a_quarter_of_what_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    small, endless = tmp_path / "memory.max", tmp_path / "limit"
    small.write_text("4000000\n")
    endless.write_text("max\n")
    monkeypatch.setattr(budgets, "CGROUPS", (str(endless), str(small), str(tmp_path / "none")))
    assert budgets.share_of_memory.__wrapped__() == 1_000_000
    monkeypatch.setattr(budgets, "CGROUPS", (str(endless),))
    assert 1 << 26 < budgets.share_of_memory.__wrapped__() <= 1 << 32


def test_a_model_file_that_runs_as_a_whole_refuses_a_limit() -> None:
    """It has no nodes of ours to count: an error says so, where an assertion failed."""
    graph = load(FIXTURES / "tflite" / "coded.tflite")
    (feed,) = (node for node in graph if node.op == "Placeholder")
    value = np.zeros([size or 1 for size in feed.attr("shape")], feed.attr("dtype").numpy)
    with Session(graph, memory_limit=10**9) as session, pytest.raises(RunError, match="keeps to no memory_limit"):
        session.run(list(graph.outputs), {feed.name: value})
