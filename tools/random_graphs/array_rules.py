"""What may be given to ops that shape, cut, join, fill and turn tensors."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import DType, Shape
from random_graphs.growth import Growth
from random_graphs.rules import Given, index, rule


@rule("Reshape")
def reshape(g: Growth) -> Given:
    x = g.tensor(g.types["T"])
    size, sizes = int(np.prod(g.shape(x))), []
    rest = size
    while rest > 1:
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        sizes.append(g.pick(divisors))
        rest //= sizes[-1]
        if len(sizes) > 5:
            break
    sizes = [*sizes, rest] if rest != 1 else sizes
    if sizes and size and g.chance():
        sizes[g.int(0, len(sizes) - 1)] = -1
    return [x, g.const(np.array(sizes, np.int64), index(g, "Tshape"))], {}


@rule("ExpandDims")
def expand(g: Growth) -> Given:
    x = g.tensor(g.types["T"], most=4)
    return [x, g.const(g.axis(len(g.shape(x)), 1), index(g, "Tdim"))], {}


@rule("Squeeze")
def squeeze(g: Growth) -> Given:
    shape = [1 if g.chance() else g.int(1, 3) for _ in range(g.int(0, 5))]
    ones = [i for i, s in enumerate(shape) if s == 1 and g.chance()]
    return [g.new(g.types["T"], shape)], {"squeeze_dims": tuple(i - len(shape) if g.chance(0.3) else i for i in ones)}


@rule("Transpose", "ConjugateTranspose")
def transpose(g: Growth) -> Given:
    x = g.tensor(g.types.get("T"))
    return [x, g.const(g.rng.permutation(len(g.shape(x))), index(g, "Tperm"))], {}


@rule("Slice")
def slice_(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=1)
    begin = [g.int(0, s) for s in g.shape(x)]
    size = [-1 if g.chance(0.3) else g.int(0, s - b) for s, b in zip(g.shape(x), begin, strict=True)]
    kind = index(g, "Index")
    return [x, g.const(begin, kind), g.const(size, kind)], {}


@rule("StridedSlice")
def strided(g: Growth) -> Given:
    x = g.tensor(g.types["T"])
    rank = len(g.shape(x))
    length = g.int(0, rank)
    kind = index(g, "Index")
    begin, end, strides = [], [], []
    shrink = 0
    for i in range(length):
        size = g.shape(x)[i]
        begin.append(g.int(-size - 1, size + 1))
        end.append(g.int(-size - 1, size + 1))
        strides.append(g.pick([1, 1, 1, 2, -1, -2]))
        if size and g.chance(0.15):
            begin[-1] = g.int(-size, size - 1)
            strides[-1] = 1
            end[-1] = begin[-1] + 1
            shrink |= 1 << i
    masks = {k: g.int(0, (1 << length) - 1) if length and g.chance(0.3) else 0 for k in ("begin_mask", "end_mask")}
    masks["begin_mask"] &= ~shrink
    if g.chance(0.2) and length:
        masks["ellipsis_mask"] = 1 << g.int(0, length - 1)
    if g.chance(0.2) and length:
        masks["new_axis_mask"] = 1 << g.int(0, length - 1)
    return [x, *(g.const(np.array(v, np.int64), kind) for v in (begin, end, strides))], masks | {
        "shrink_axis_mask": shrink
    }


@rule("Pad", "PadV2", "MirrorPad")
def pad(g: Growth) -> Given:
    x = g.tensor(g.types["T"], most=4)
    mode = g.pick([b"REFLECT", b"SYMMETRIC"])
    most = [s - (mode == b"REFLECT") for s in g.shape(x)]
    pads = [[g.int(0, max(0, min(m, 3))), g.int(0, max(0, min(m, 3)))] for m in most]
    paddings = g.const(np.array(pads).reshape(len(most), 2), index(g, "Tpaddings"))
    return [x, paddings, g.new(g.types["T"], ())], {"mode": mode}


@rule("Concat", "ConcatV2")
def concat(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=1)
    shape = g.shape(x)
    axis = g.axis(len(shape))
    parts = [x]
    for _ in range(g.int(1, 3)):
        other = list(shape)
        other[axis] = g.int(0, 3)
        parts.append(g.like(g.types["T"], other))
    return [*parts, g.const(axis, index(g))], {"N": len(parts)}


@rule("Pack", "ParallelStack")
def pack(g: Growth) -> Given:
    x = g.tensor(g.types["T"], most=4)
    parts = [x, *(g.like(g.types["T"], g.shape(x)) for _ in range(g.int(0, 3)))]
    return parts, {"N": len(parts), "axis": g.axis(len(g.shape(x)), 1)}


@rule("Unpack")
def unpack(g: Growth) -> Given:
    x = g.nonempty(g.types["T"], g.int(1, 4))
    axis = g.axis(len(g.shape(x)))
    return [x], {"axis": axis, "num": g.shape(x)[axis]}


@rule("Split")
def split(g: Growth) -> Given:
    count = g.int(1, 4)
    shape = [g.int(1, 4) for _ in range(g.int(1, 4))]
    axis = g.axis(len(shape))
    shape[axis] = count * g.int(0, 3)
    return [g.const(axis), g.new(g.types["T"], shape)], {"num_split": count}


@rule("SplitV")
def split_v(g: Growth) -> Given:
    shape = [g.int(1, 4) for _ in range(g.int(1, 4))]
    axis = g.axis(len(shape))
    sizes = [g.int(0, 3) for _ in range(g.int(1, 4))]
    shape[axis] = sum(sizes)
    if g.chance(0.3):
        sizes[g.int(0, len(sizes) - 1)] = -1
    return [g.new(g.types["T"], shape), g.const(sizes, index(g, "Tlen")), g.const(axis)], {"num_split": len(sizes)}


@rule("Tile")
def tile(g: Growth) -> Given:
    x = g.tensor(g.types["T"], most=4)
    return [x, g.const(np.array([g.int(0, 3) for _ in g.shape(x)], np.int64), index(g, "Tmultiples"))], {}


@rule("Fill")
def fill(g: Growth) -> Given:
    return [
        g.const(np.array([g.int(0, 4) for _ in range(g.int(0, 4))], np.int64), index(g, "index_type")),
        g.new(g.types["T"], ()),
    ], {}


@rule("BroadcastTo")
def broadcast_to(g: Growth) -> Given:
    shape = [g.int(0, 4) for _ in range(g.int(0, 4))]
    return [g.broadcast(g.types["T"], tuple(shape)), g.const(np.array(shape, np.int64), index(g))], {}


@rule("Range")
def range_(g: Growth) -> Given:
    kind = g.types["Tidx"]
    if kind.numpy.kind in "iu":
        values: list[float] = [g.int(0, 5), g.int(0, 20), g.int(1, 4)]
    else:
        values = [g.pick([0, -1.5, 0.1]), g.pick([5, 7.3, 1]), g.pick([1, 0.5, 0.3])]
    if g.chance(0.3) and kind.numpy.kind != "u":
        values = [values[1], values[0], -values[2]]
    return [g.const(v, kind) for v in values], {}


@rule("LinSpace")
def lin_space(g: Growth) -> Given:
    return [
        g.ordinary(g.types["T"], (), -5, 5),
        g.ordinary(g.types["T"], (), -5, 5),
        g.const(g.int(1, 12), index(g)),
    ], {}


@rule("ReverseV2")
def reverse(g: Growth) -> Given:
    x = g.tensor(g.types["T"])
    return [x, g.const(np.array(g.axes(len(g.shape(x))), np.int64), index(g))], {}


@rule("Reverse")
def reverse_v1(g: Growth) -> Given:
    x = g.tensor(g.types["T"])
    return [x, g.const(np.array([g.chance() for _ in g.shape(x)], bool), "bool")], {}


@rule("Roll")
def roll(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=1)
    count = g.int(1, 2)
    shift = np.array([g.int(-7, 7) for _ in range(count)])
    axes = np.array([g.axis(len(g.shape(x))) for _ in range(count)])
    return [x, g.const(shift, index(g, "Tshift")), g.const(axes, index(g, "Taxis"))], {}


@rule("ReverseSequence")
def reverse_sequence(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=2)
    rank = len(g.shape(x))
    batch, sequence = (int(v) for v in g.rng.permutation(rank)[:2])
    lengths = g.rng.integers(0, g.shape(x)[sequence] + 1, g.shape(x)[batch])
    return [x, g.source(lengths, index(g, "Tlen"))], {"seq_dim": sequence, "batch_dim": batch}


@rule("OneHot")
def one_hot(g: Growth) -> Given:
    places = g.source(
        g.rng.integers(-1 if g.types["TI"].name != "uint8" else 0, 6, [g.int(0, 4) for _ in range(g.int(0, 3))]),
        g.types["TI"],
    )
    rank = len(g.shape(places))
    return [places, g.const(g.int(0, 6)), g.new(g.types["T"], ()), g.new(g.types["T"], ())], {"axis": g.int(-1, rank)}


@rule("Cast")
def cast(g: Growth) -> Given:
    return [g.tensor(g.types["SrcT"])], {"Truncate": g.chance(0.2)}


@rule("Bitcast")
def bitcast(g: Growth) -> Given:
    return [g.tensor(g.types["T"], least=1)], {}


@rule("Select")
def select(g: Growth) -> Given:
    x = g.tensor(g.types["T"])
    shape = g.shape(x)
    test = shape if g.chance() or not shape else g.pick([(), shape[:1]])
    return [g.like(DType.named("bool"), test), x, g.like(g.types["T"], shape)], {}


@rule("EnsureShape")
def ensure(g: Growth) -> Given:
    x = g.tensor(g.types["T"])
    return [x], {"shape": Shape([None if g.chance(0.3) else s for s in g.shape(x)])}


@rule("ConcatOffset")
def concat_offset(g: Growth) -> Given:
    shape = [g.int(1, 4) for _ in range(g.int(1, 3))]
    axis = g.int(0, len(shape) - 1)
    kind = g.types.get("shape_type", DType.named("int32"))
    others = [[g.int(0, 5) if i == axis else s for i, s in enumerate(shape)] for _ in range(g.int(2, 3))]
    return [g.const(axis), *(g.const(other, kind) for other in others)], {"N": len(others)}


@rule("BroadcastArgs", "BroadcastGradientArgs")
def shapes(g: Growth) -> Given:
    whole = tuple(g.int(1, 4) for _ in range(g.int(0, 4)))
    other = tuple(1 if g.chance(0.4) else s for s in whole[g.int(0, len(whole)) :])
    return [g.const(np.array(v, np.int64), g.types["T"]) for v in (whole, other)], {}


@rule("Where", "Shape", "Size", "Rank", "Identity", "StopGradient", "Snapshot", "PreventGradient", "ZerosLike",
      "OnesLike", "DeepCopy", "L2Loss", "PlaceholderWithDefault", "AsString")  # fmt: skip
def anything(g: Growth) -> Given:
    return [g.tensor(g.types.get("T", g.types.get("dtype")))], {"shape": Shape(None)}


@rule("MatrixDiag", "Diag")
def diag(g: Growth) -> Given:
    return [g.tensor(g.types["T"], least=1, most=3)], {}


@rule("MatrixSetDiag")
def set_diag(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=2)
    *lead, rows, columns = g.shape(x)
    return [x, g.like(g.types["T"], [*lead, min(rows, columns)])], {}
