"""What may be given to reductions, products, transforms and what stands near them."""

from __future__ import annotations

from pocketgraph.graph import DType, Shape
from random_graphs.growth import Growth
from random_graphs.rules import Given, index, rule


@rule("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm", "ReduceJoin")
def reduction(g: Growth) -> Given:
    x = g.tensor(g.types.get("T", DType.named("string" if g.op == "ReduceJoin" else "bool")))
    rank = len(g.shape(x))
    axes = g.axis(rank) if rank and g.chance(0.4) else g.axes(rank)
    return [x, g.const(axes, index(g))], {"keep_dims": g.chance()}


@rule("ArgMax", "ArgMin")
def arg(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=1)
    return [x, g.const(g.axis(len(g.shape(x))), index(g))], {}


@rule("Cumsum", "Cumprod", "CumulativeLogsumexp")
def running(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=1)
    return [x, g.const(g.axis(len(g.shape(x))), index(g))], {"exclusive": g.chance(), "reverse": g.chance()}


@rule("MatMul", "SparseMatMul")
def matmul(g: Growth) -> Given:
    a = g.tensor(g.types.get("T", g.types.get("Ta")), rank=2)
    ta, tb = g.chance(), g.chance()
    inner, outer = g.shape(a)[0 if ta else 1], g.int(1, 6)
    b = g.like(g.types.get("T", g.types.get("Tb")), (outer, inner) if tb else (inner, outer))
    return [a, b], {"transpose_a": ta, "transpose_b": tb}


@rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(g: Growth) -> Given:
    a = g.tensor(g.types.get("T", g.types.get("Ta")), least=2)
    ta, tb = g.chance(), g.chance()
    lead, inner, outer = g.shape(a)[:-2], g.shape(a)[-2 if ta else -1], g.int(1, 6)
    b = g.like(g.types.get("T", g.types.get("Tb")), (*lead, *((outer, inner) if tb else (inner, outer))))
    return [a, b], {"adj_x": ta, "adj_y": tb}


@rule("AddN", "AccumulateNV2")
def add_n(g: Growth) -> Given:
    x = g.tensor(g.types["T"])
    parts = [x, *(g.like(g.types["T"], g.shape(x)) for _ in range(g.int(0, 9)))]
    return parts, {"N": len(parts), "shape": Shape(g.shape(x))}


@rule("ClipByValue")
def clip(g: Growth) -> Given:
    x = g.tensor(g.types["T"])
    low, high = sorted((g.int(0, 3), g.int(0, 5)))
    return [x, g.const(low, g.types["T"]), g.const(high, g.types["T"])], {}


@rule("MatrixDiagPart", "MatrixBandPart", "MatrixInverse", "MatrixDeterminant", "Cholesky")
def matrix(g: Growth) -> Given:
    n = g.int(1, 4)
    square = g.op in ("MatrixInverse", "MatrixDeterminant", "Cholesky")
    x = g.new(g.types["T"], [*(g.int(1, 3) for _ in range(g.int(0, 2))), n, n if square else g.int(1, 4)])
    kind = index(g, "Tindex")
    return [x, g.const(g.int(-1, 3), kind), g.const(g.int(-1, 3), kind)], {}


@rule("Cross")
def cross(g: Growth) -> Given:
    shape = [g.int(1, 3) for _ in range(g.int(0, 2))] + [3]
    return [g.new(g.types["T"], shape), g.new(g.types["T"], shape)], {}


@rule("Einsum")
def einsum(g: Growth) -> Given:
    sizes = {letter: g.int(1, 4) for letter in "abcdk"}
    equation = g.pick(
        ["ab,bc->ac", "abk,kc->abc", "abc->ca", "aab->ab", "ab,ab->", "abk,ack->abc", "a,b->ab", "ab->", "abc,abd->acd"]
    )
    parts = equation.partition("->")[0].split(",")
    return [g.like(g.types["T"], [sizes[c] for c in part]) for part in parts], {
        "equation": equation.encode(),
        "N": len(parts),
    }


@rule("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D")
def fft(g: Growth) -> Given:
    return [g.nonempty(g.types["Tcomplex"], g.int(3, 4))], {}


@rule("RFFT", "IRFFT")
def rfft(g: Growth) -> Given:
    x = g.nonempty(g.types["Treal"] if g.op == "RFFT" else g.types["Tcomplex"], g.int(1, 3))
    return [x, g.const([g.int(1, 9)])], {}


@rule("FakeQuantWithMinMaxArgs")
def fake_quant(g: Growth) -> Given:
    return [g.tensor(DType.named("float"))], {
        "min": -float(g.int(0, 6)),
        "max": float(g.int(1, 6)),
        "num_bits": g.int(2, 10),
        "narrow_range": g.chance(),
    }


@rule("FakeQuantWithMinMaxVars")
def fake_quant_vars(g: Growth) -> Given:
    real = DType.named("float")
    return [g.tensor(real), g.ordinary(real, (), -3, 0), g.ordinary(real, (), 0.1, 3)], {
        "num_bits": g.int(2, 10),
        "narrow_range": g.chance(),
    }


@rule("CheckNumerics", "CheckNumericsV2")
def numerics(g: Growth) -> Given:
    return [g.tensor(g.types["T"])], {"message": b"bad"}
