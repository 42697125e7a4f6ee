"""What each lowered op gives at the edges of its type, on LiteRT, on the reference engine and in TensorFlow.

    python tools/edge_values.py --oracle PYTHON [--also PYTHON] [--strict] [--only Exp,Max] [--all]

PYTHON is an interpreter that has TensorFlow; --also names one of another version. Every case is a small graph whose
inputs hold NaN, infinities, zeros of both signs, the smallest and largest numbers, large arguments and the extremes of
integers, each of them in several places, because vectors and what is left over are computed by different code. A line
is an op, what went in, and what came out of each. --strict shows what a strict session still has otherwise; --all also
lists subnormal numbers, which TensorFlow takes for 0, and where LiteRT is right and the reference engine is not.
``docs/exactness.md`` holds the table.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

LARGEST, SMALLEST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
FLOATS = (
    [float("nan"), float("inf"), float("-inf"), 0.0, -0.0]
    + [s * v for v in (1e-45, 1e-40, SMALLEST, 1e-30, 1e-20, 1e-6, 1e-3, 0.5, 1.0, 1.5, 2.5, 3.0, 6.0) for s in (1, -1)]
    + [s * v for v in (16.6, 17.5, 20, 87.3, 88.7, 89, 104, 200, 1e4, 1e5, 8388609.0, 2.0**24 + 2) for s in (1, -1)]
    + [s * v for v in (2147483520.0, 2.0**31, 2.0**32 + 512, 1e15, 9.3e18, 1e20, 1e27, 1e30) for s in (1, -1)]
    + [s * v for v in (1.7e38, 3e38, LARGEST) for s in (1, -1)]
)
RELATIVE = 1e-5  # what counts as the same finite number, of the larger of both
CANCELLING = 3e-6  # likewise, of sums of ordinary numbers, of sines, and where a factor is near 0
SUBNORMAL = ("1.401e-45", "1e-40")
SUMS = ("Sum", "Mean", "AvgPool", "Conv2D", "DepthwiseConv2dNative", "Conv2DBackpropInput", "MatMul", "LRN", "L2Loss")
SUMS += ("Cumsum", "Sin", "Cos", "Resize", "Erf", "SoftplusGrad", "LogSoftmax", "FusedBatchNorm")

UNARY = [
    "Sigmoid", "Tanh", "Exp", "Log", "Log1p", "Sqrt", "Rsqrt", "Abs", "Neg", "Floor", "Ceil", "Round", "Rint",
    "Sin", "Cos", "Sign", "Square", "Reciprocal", "Inv", "Erf", "Erfc", "Relu", "Relu6", "Elu", "Selu", "Softplus",
    "Softsign", "LeakyRelu",
]  # fmt: skip
BINARY = [
    "AddV2", "Sub", "Mul", "RealDiv", "Div", "FloorDiv", "FloorMod", "Maximum", "Minimum", "Pow",
    "SquaredDifference",
]  # fmt: skip
COMPARED = ["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"]
GRADIENTS = [
    "ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad", "SigmoidGrad",
    "TanhGrad", "SqrtGrad", "RsqrtGrad", "InvGrad", "ReciprocalGrad",
]  # fmt: skip
FEW = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-45, 1e-30, 0.5, -1.5, 3.0, 89.0, -104.0, 1e20, LARGEST]
FEW += [-LARGEST, 2.0**31]
TYPES = {
    "float": np.float32,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "int8": np.int8,
    "int16": np.int16,
}

GOLDEN = [
    "Sigmoid", "Tanh", "Exp", "Log", "Log1p", "Sqrt", "Rsqrt", "Sin", "Relu", "Relu6", "LeakyRelu", "Softplus",
    "Maximum", "ClipByValue", "Softmax", "ArgMin", "Max", "Min", "Mean", "MaxPool", "AvgPool", "MatMul", "Cast", "Sum",
    "Conv2D (2 channels)", "DepthwiseConv2dNative, 7x7", "Conv2DBackpropInput", "ResizeBilinear",
]  # fmt: skip
"""The cases of --golden: tests/runtime/test_strict.py reads them from tests/fixtures/edge_values.npz."""


class Case:
    """A graph as text, what is fed, and which fed number each element of the result is about.

    Attributes:
        op: what the line is called.
        text: the graph; its result is ``y``.
        feeds: arrays by placeholder.
        about: of each element of the result, as text; its shape is the result's.
    """

    def __init__(self, op: str, text: str, feeds: dict[str, Any], about: Any = None) -> None:
        self.op, self.text, self.feeds, self.about = op, text, feeds, about


def placeholders(feeds: dict[str, Any]) -> str:
    names = {np.dtype(v): k for k, v in TYPES.items()} | {np.dtype(bool): "bool"}
    return "\n".join(f"{k} = Placeholder(dtype={names[v.dtype]}, shape={list(v.shape)})" for k, v in feeds.items())


def cases() -> list[Case]:
    found: list[Case] = []
    base = np.array(FLOATS, np.float32)
    rolled = np.stack([np.roll(base, r) for r in range(17)])
    names = np.vectorize(named)(rolled)

    def add(op: str, body: str, feeds: dict[str, Any], about: Any = None) -> None:
        found.append(Case(op, f"{placeholders(feeds)}\n{body}", feeds, about))

    for op in UNARY:
        add(op, f"y = {op}(x, T=float)", {"x": rolled}, names)
    a, b = np.meshgrid(base, base, indexing="ij")
    pairs = np.vectorize(lambda p, q: f"{named(p)}, {named(q)}")(a, b)
    for op in BINARY:
        add(op, f"y = {op}(x, z, T=float)", {"x": a.copy(), "z": b.copy()}, pairs)
    for op in COMPARED:
        add(op, f"y = {op}(x, z, T=float)", {"x": a.copy(), "z": b.copy()}, pairs)
    for op in GRADIENTS:
        add(op, f"y = {op}(x, z, T=float)", {"x": a.copy(), "z": b.copy()}, pairs)
    for low, high in ((-1.0, 2.0), (-2.0, 300.0)):
        bounds = f"low = Const(float {low})\nhigh = Const(float {high})\n"
        add("ClipByValue", bounds + "y = ClipByValue(x, low, high, T=float)", {"x": rolled}, names)
    for bound in (0.0, 6.0, 0.25, -1.0):
        for op in ("Maximum", "Minimum"):
            add(f"{op} with {bound:g}", f"c = Const(float {bound})\ny = {op}(x, c, T=float)", {"x": rolled}, names)
    for text, code in (
        ("Maximum, Minimum to 0…6", "m = Maximum(x, c, T=float)\ny = Minimum(m, d, T=float)"),
        ("Minimum, Maximum to 0…6", "m = Minimum(x, d, T=float)\ny = Maximum(m, c, T=float)"),
        ("Relu of a sum", "m = AddV2(x, c, T=float)\ny = Relu(m, T=float)"),
        ("Relu6 of a sum", "m = AddV2(x, c, T=float)\ny = Relu6(m, T=float)"),
    ):
        add(text, f"c = Const(float 0.0)\nd = Const(float 6.0)\n{code}", {"x": rolled}, names)
    slope = "s = Const(float 0.2)\np = Mul(x, s, T=float)\ny = Maximum(x, p, T=float)"
    add("max(x, 0.2 x)", slope, {"x": rolled}, names)
    body = "g = Const(float 0.0)\nc = Greater(x, g, T=float)\ns = Const(float 0.2)\np = Mul(x, s, T=float)\n"
    add("Select by sign", body + "y = Select(c, x, p, T=float)", {"x": rolled}, names)

    for seed, length in ((0, 20), (1, 7)):  # one special among ordinary numbers, in each place
        rows = np.random.default_rng(seed).normal(size=(len(FEW) * length, length)).astype("f4")
        about = np.array([named(np.float32(v)) for v in FEW for _ in range(length)])
        for place, v in enumerate(v for v in FEW for _ in range(length)):
            rows[place, place % length] = v
        for op in ("Sum", "Mean", "Prod", "Max", "Min"):
            for axis, x, r in ((1, rows, about), (0, rows.T.copy(), about)):
                body = f"a = Const(int32[1] [{axis}])\ny = {op}(x, a, T=float, Tidx=int32, keep_dims=false)"
                add(op, body, {"x": x}, r)
        for op in ("Softmax", "LogSoftmax"):
            add(op, f"y = {op}(x, T=float)", {"x": rows}, np.repeat(about[:, None], length, 1))
        for op in ("ArgMax", "ArgMin"):
            body = f"a = Const(int32 1)\ny = {op}(x, a, T=float, Tidx=int32, output_type=int64)"
            add(op, body, {"x": rows}, about)
        body = "a = Const(int32 1)\ny = Cumsum(x, a, T=float, Tidx=int32)"
        add("Cumsum", body, {"x": rows}, np.repeat(about[:, None], length, 1))
        add("TopKV2", "k = Const(int32 2)\ny = TopKV2(x, k, T=float)", {"x": rows}, np.repeat(about[:, None], 2, 1))
        add("L2Loss", "y = L2Loss(x, T=float)", {"x": rows[: length * 3 : length].copy()}, np.array("nan"))
    pictures(add)
    integers(add)
    return found


def pictures(add: Any) -> None:
    """Windows and products: one special pixel in a picture each."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(len(FEW), 10, 11, 3)).astype("f4")
    for index, v in enumerate(FEW):
        x[index, 4, 5, 1] = v
    about = np.array([named(np.float32(v)) for v in FEW]).reshape(-1, 1, 1, 1)
    for op in ("MaxPool", "AvgPool"):
        for size, stride, padding in ((2, 2, "VALID"), (3, 1, "SAME"), (3, 2, "SAME")):
            window = f"ksize=[1,{size},{size},1], strides=[1,{stride},{stride},1], padding='{padding}'".replace(
                "'", '"'
            )
            add(op, f"y = {op}(x, T=float, {window})", {"x": x}, about)
    for outputs in (2, 5, 16):
        weights = rng.normal(size=(3, 3, 3, outputs)).round(2)
        filled = f"w = Const(float[3,3,3,{outputs}] {weights.tolist()})\n"
        for activation in ("", "Relu", "Relu6"):
            body = filled + 'c = Conv2D(x, w, T=float, strides=[1,1,1,1], padding="SAME")\n'
            body += f"y = {activation or 'Identity'}(c, T=float)"
            add(f"Conv2D{' and ' if activation else ''}{activation} ({outputs} channels)", body, {"x": x}, about)
    weights = rng.normal(size=(3, 3, 3, 2)).round(2)
    body = f"w = Const(float[3,3,3,2] {weights.tolist()})\n"
    body += 'y = DepthwiseConv2dNative(x, w, T=float, strides=[1,1,1,1], padding="SAME")'
    add("DepthwiseConv2dNative", body, {"x": x}, about)
    weights = rng.normal(size=(7, 7, 3, 1)).round(2)
    body = f"w = Const(float[7,7,3,1] {weights.tolist()})\n"
    body += 'y = DepthwiseConv2dNative(x, w, T=float, strides=[1,1,1,1], padding="SAME")'
    add("DepthwiseConv2dNative, 7x7", body, {"x": x}, about)
    weights = rng.normal(size=(3, 3, 2, 3)).round(2)
    body = f"w = Const(float[3,3,2,3] {weights.tolist()})\ns = Const(int32[4] [{len(FEW)}, 20, 22, 2])\n"
    body += 'y = Conv2DBackpropInput(s, w, x, T=float, strides=[1,2,2,1], padding="SAME")'
    add("Conv2DBackpropInput", body, {"x": x}, about)
    ones = "\n".join(f"{n} = Const(float[3] {v})" for n, v in zip("abcd", (1.5, 0.25, 0.5, 2.0), strict=True))
    add("FusedBatchNorm", ones + "\ny = FusedBatchNorm(x, a, b, c, d, T=float, is_training=false)", {"x": x}, about)
    add("BiasAdd", "b = Const(float[3] 0.5)\ny = BiasAdd(x, b, T=float)", {"x": x}, about)
    body = "y = LRN(x, T=float, depth_radius=1, bias=1.0, alpha=0.5, beta=0.5)"
    wide = np.concatenate([x, rng.normal(size=(*x.shape[:3], 5)).astype("f4")], 3)
    add("LRN", body, {"x": wide}, about)
    for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
        add(op, f"s = Const(int32[2] [20, 22])\ny = {op}(x, s, T=float)", {"x": x}, about)
    rows = x[:, 4, 5:7, :].reshape(len(FEW), 6).copy()
    weights = rng.normal(size=(6, 8)).round(2)
    body = f"w = Const(float[6,8] {weights.tolist()})\ny = MatMul(x, w, T=float)"
    add("MatMul", body, {"x": rows}, about[..., 0, 0])
    add("MatMul of computed", "y = MatMul(x, z, T=float)", {"x": rows, "z": weights.astype("f4")}, about[..., 0, 0])
    axes = "a = Const(int32[2] [1, 2])\n"
    for op in ("Mean", "Sum", "Max"):
        body = axes + f"y = {op}(x, a, T=float, Tidx=int32, keep_dims=false)"
        add(f"{op} of pictures", body, {"x": x}, about[..., 0, 0])


def integers(add: Any) -> None:
    for name in ("int32", "int64"):
        kind = TYPES[name]
        info = np.iinfo(kind)
        base = np.array([info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 3, 46341, info.max // 2, info.max - 1, info.max])
        base = base.astype(kind)
        a, b = np.meshgrid(base, base, indexing="ij")
        pairs = np.vectorize(lambda p, q: f"{p}, {q}")(a, b)
        for op in ("AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", *COMPARED):
            add(f"{op} of {name}", f"y = {op}(x, z, T={name})", {"x": a.copy(), "z": b.copy()}, pairs)
        for op in ("FloorDiv", "Div", "FloorMod"):
            safe = np.where((b == 0) | (b == -1), kind(5), b)  # TensorFlow 1.15 ends the process for lowest / -1
            about = np.vectorize(lambda p, q: f"{p}, {q}")(a, safe)
            add(f"{op} of {name}", f"y = {op}(x, z, T={name})", {"x": a.copy(), "z": safe}, about)
        texts = np.vectorize(str)(base)
        for op in ("Neg", "Abs", "Square", "Sign"):
            add(f"{op} of {name}", f"y = {op}(x, T={name})", {"x": base}, texts)
        rows = np.stack([np.roll(base, r)[:4] for r in range(len(base))])
        about = np.array([", ".join(map(str, row)) for row in rows])
        for op in ("Sum", "Prod", "Mean", "Max", "Min"):
            body = f"a = Const(int32[1] [1])\ny = {op}(x, a, T={name}, Tidx=int32, keep_dims=false)"
            add(f"{op} of {name}", body, {"x": rows}, about)
        body = f"a = Const(int32 1)\ny = Cumsum(x, a, T={name}, Tidx=int32)"
        add(f"Cumsum of {name}", body, {"x": rows}, np.repeat(about[:, None], 4, 1))
    base = np.array(FLOATS, np.float32)
    for count in (64, 61):
        taken = base[:count]
        for name in ("int32", "int64", "uint8", "int8", "int16", "bool"):
            body = f"y = Cast(x, SrcT=float, DstT={name})"
            add(f"Cast of float to {name} ({count})", body, {"x": taken}, np.vectorize(named)(taken))
    for source in ("int32", "int64"):
        info = np.iinfo(TYPES[source])
        numbers = np.array([info.min, -(2**24) - 1, -129, -1, 0, 1, 127, 128, 255, 256, 32768, 2**24 + 1, info.max])
        numbers = numbers.astype(TYPES[source])
        for target in ("float", "int32", "int64", "uint8", "int8", "int16", "bool"):
            if target != source:
                body = f"y = Cast(x, SrcT={source}, DstT={target})"
                add(f"Cast of {source} to {target}", body, {"x": numbers}, np.vectorize(str)(numbers))


def named(value: Any) -> str:
    """A number as the tables call it."""
    known = {LARGEST: "largest", -LARGEST: "-largest", SMALLEST: "smallest normal", -SMALLEST: "-smallest normal"}
    number = float(value)
    if number == 0:
        return "-0" if np.signbit(value) else "0"
    return known.get(number) or f"{number:.4g}"


def differs(ours: Any, theirs: Any, op: str) -> Any:
    """Where two results are not the same number: NaN for NaN, finite ones within 1e-5, the sign of 0 left aside."""
    if ours.dtype.kind != "f":
        return ours != theirs
    absolute = CANCELLING if op.startswith(SUMS) else SMALLEST
    with np.errstate(all="ignore"):
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        near = np.abs(a - b) <= RELATIVE * np.maximum(np.abs(a), np.abs(b)) + absolute
        near &= np.isfinite(a) & np.isfinite(b)
    return ~(same | near)


def oracle(python: str, folder: pathlib.Path) -> list[Any]:
    """The results of every case in TensorFlow; None where it has no such kernel."""
    command = ["env", "-u", "PYTHONPATH", python, __file__, "--worker", str(folder)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, env=None)
    count = len(list(folder.glob("*.pb")))
    results = []
    for index in range(count):
        path = folder / f"{index}.out.npy"
        results.append(np.load(path) if path.exists() else None)
        path.unlink(missing_ok=True)
    return results


def work(folder: pathlib.Path) -> None:
    """In TensorFlow's own process: runs what lies in a folder."""
    import os

    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    import tensorflow

    tf = tensorflow.compat.v1
    for path in folder.glob("*.pb"):
        definition = tf.GraphDef()
        definition.ParseFromString(path.read_bytes())
        with tf.Graph().as_default() as graph:
            try:
                tf.import_graph_def(definition, name="")
                feeds = {f"{k}:0": v for k, v in np.load(path.with_suffix(".npz")).items()}
                config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
                config.graph_options.optimizer_options.opt_level = -1
                config.graph_options.rewrite_options.disable_meta_optimizer = True
                with tf.Session(graph=graph, config=config) as session:
                    np.save(path.with_suffix(".out.npy"), session.run("y:0", feeds))
            except Exception as error:
                print(path.name, str(error).splitlines()[0][:150])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle")
    parser.add_argument("--also")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--json", help="write what was found there")
    parser.add_argument("--golden", help="write the cases of GOLDEN with TensorFlow's results there, and no more")
    parser.add_argument("--worker")
    options = parser.parse_args()
    if options.worker:
        work(pathlib.Path(options.worker))
        return
    from pocketgraph import Session, save
    from pocketgraph.graph.text_format import parse

    if options.golden:
        FLOATS[:] = [v for v in FLOATS if not 0 < abs(v) < SMALLEST]  # TensorFlow takes subnormal ones for 0
        FEW[:] = [float("nan"), float("inf"), float("-inf"), 1e20]
        wanted = [c for c in cases() if c.op in GOLDEN or c.op.split(" ")[0] in GOLDEN]
    else:
        wanted = cases()
    chosen = [c for c in wanted if not options.only or c.op.split(" ")[0] in options.only.split(",")]
    with tempfile.TemporaryDirectory() as kept:
        folder = pathlib.Path(kept)
        for index, case in enumerate(chosen):
            save(parse(case.text), str(folder / f"{index}.pb"))
            np.savez(folder / f"{index}.npz", **case.feeds)
        new = oracle(options.oracle, folder)
        if options.golden:
            write_golden(options.golden, chosen, new)
            return
        old = oracle(options.also, folder) if options.also else [None] * len(chosen)
    lines: dict[str, dict[str, Any]] = {}
    for case, first, second in zip(chosen, new, old, strict=True):
        graph = parse(case.text)
        try:
            how = {"strict": True} if options.strict else {"engine": "litert"}
            with Session(graph, threads=1, cache_dir="", **how) as session:
                ours = session.run("y", case.feeds)[0]
        except Exception as error:
            print(f"{case.op}: not on LiteRT: {str(error)[:150]}", file=sys.stderr)
            continue
        with Session(graph, threads=1, engine="reference") as session:
            reference = session.run("y", case.feeds)[0]
        if first is None:
            print(f"{case.op}: not in TensorFlow", file=sys.stderr)
            continue
        about = np.broadcast_to(case.about, first.shape)
        wrong = differs(ours, first, case.op)
        if options.all:
            wrong |= differs(reference, first, case.op)
        else:  # TensorFlow takes subnormal numbers for 0
            wrong &= ~np.vectorize(lambda text: any(number in text for number in SUBNORMAL))(about)
        for place in zip(*np.nonzero(np.atleast_1d(wrong)), strict=True):
            at = place if first.shape else ()
            row = lines.setdefault(case.op, {"wrong": 0, "examples": {}})
            row["wrong"] += 1
            also = "" if second is None else text(second[at])
            row["examples"].setdefault(str(about[at]), (text(ours[at]), text(reference[at]), text(first[at]), also))
    for op, row in lines.items():
        shown = list(row["examples"].items())
        print(f"{op}: {row['wrong']}, {len(shown)} inputs")
        for value, (ours, ref, first, second) in shown[: None if options.only else 12]:
            print(f"    {value:>30}: LiteRT {ours:>14} reference {ref:>14} TensorFlow {first:>14} also {second}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(lines, indent=1))


def write_golden(target: str, chosen: list[Case], results: list[Any]) -> None:
    arrays: dict[str, Any] = {}
    for index, (case, result) in enumerate(zip(chosen, results, strict=True)):
        arrays |= {f"{index}/op": np.array(case.op), f"{index}/text": np.array(case.text), f"{index}/result": result}
        arrays |= {f"{index}/feeds/{name}": value for name, value in case.feeds.items()}
    np.savez_compressed(target, **arrays)


def text(value: Any) -> str:
    return f"{value:.7g}" if value.dtype.kind == "f" else str(value)


if __name__ == "__main__":
    main()
