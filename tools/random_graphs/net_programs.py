"""Programs that are small networks: convolutions and what stands around them, in both layouts, sequences and rows."""

from __future__ import annotations

from collections.abc import Callable

from pocketgraph.graph import Node, Shape
from random_graphs.net_layers import Layers, Map
from random_graphs.programs import FLOAT, INT, LONG, Program, program

LARGEST = 40_000  # elements of a feature map; larger ones are made smaller first
FEWEST, MOST = 3, 12  # blocks of a network


def picture(p: Program, layers: Layers) -> Map:
    """What is fed: sizes from 1 on, odd and even, the batch perhaps unknown."""
    n, h, w = (
        p.pick([1, 1, 1, 2, 3]),
        p.pick([1, 5, 7, 8, 12, 15, 16, 21, 24, 32]),
        p.pick([1, 6, 7, 9, 12, 16, 17, 24, 33]),
    )
    c = p.pick([1, 2, 3, 3, 3, 4, 6, 8, 16, 32])
    sizes = layers.four(n, h, w, c)
    name = f"p{len(p.nodes)}"
    known = p.pick([Shape(sizes), Shape(sizes), Shape((None, *sizes[1:])), Shape(layers.four(n, None, None, c))])
    p.nodes.append(Node(name, "Placeholder", (), {"dtype": FLOAT, "shape": known}))
    p.feeds[name] = p.rng.standard_normal(sizes).astype("float32")
    return Map(name, n, h, w, c)


def residual(p: Program, layers: Layers, x: Map) -> Map:
    """A sum of a block and its input, which a convolution of one pixel fits to it where it must."""
    y = layers.activation(layers.shifted(layers.conv(x)))
    if p.chance():
        y = layers.shifted(layers.conv(y, size=p.pick([1, 3])))
    side = x
    if (side.h, side.w, side.c) != (y.h, y.w, y.c):
        strides = layers.four(1, -(-x.h // y.h), -(-x.w // y.w), 1)
        weights = layers.weights(1, 1, x.c, y.c, fan_in=x.c)
        h, w = -(-x.h // strides[2 if layers.nchw else 1]), -(-x.w // strides[3 if layers.nchw else 2])
        attrs = {"strides": strides, "padding": b"SAME", "data_format": layers.layout}
        side = Map(layers.op("Conv2D", [x.ref, weights], **attrs), x.n, h, w, y.c)
        if (h, w) != (y.h, y.w):
            return y
        if p.chance():
            side = layers.shifted(side)
    pair = [y.ref, side.ref]
    joined = p.add(p.pick(["Add", "AddV2"]), pair[::-1] if p.chance() else pair, T=FLOAT)
    if p.chance(0.2):
        joined = p.add("AddN", pair, T=FLOAT, N=2)
    y = Map(joined, y.n, y.h, y.w, y.c)
    return layers.activation(y) if p.chance(0.7) else y


def branches(p: Program, layers: Layers, x: Map) -> Map:
    """Two or three towers side by side, their channels joined."""
    towers = []
    sources = layers.parted(x) if p.chance(0.3) and x.c > 1 else [x] * p.int(2, 3)
    for source in sources:
        y = source
        for _ in range(p.int(0, 2)):
            y = layers.activation(layers.shifted(layers.conv(y, size=p.pick([1, 1, 3]))))
        towers.append(y)
    same = [t for t in towers if (t.h, t.w) == (towers[0].h, towers[0].w)]
    return layers.joined(same)


def plain(p: Program, layers: Layers, x: Map) -> Map:
    return layers.activation(layers.shifted(layers.conv(x)))


def separable(p: Program, layers: Layers, x: Map) -> Map:
    y = layers.conv(x, depthwise=True)
    if p.chance():
        y = layers.activation(layers.shifted(y))
    return layers.activation(layers.shifted(layers.conv(y, size=1)))


def strided(p: Program, layers: Layers, x: Map) -> Map:
    """Convolutions of one pixel that skip pixels, several of one source at times: strides move to what comes before."""
    source = layers.activation(layers.shifted(layers.conv(x, size=p.pick([1, 3]))), "Relu")
    ends = []
    for _ in range(p.int(1, 2)):
        out, step = p.pick([4, 8, 16]), 2
        attrs = {
            "strides": layers.four(1, step, step, 1),
            "padding": p.pick([b"SAME", b"VALID"]),
            "data_format": layers.layout,
        }
        weights = layers.weights(1, 1, source.c, out, fan_in=source.c)
        made = layers.op("Conv2D", [source.ref, weights], **attrs)
        ends.append(Map(made, x.n, -(-source.h // step), -(-source.w // step), out))
    return layers.joined([layers.activation(layers.shifted(end)) for end in ends])


def block(p: Program, layers: Layers, x: Map) -> Map:
    if x.n * x.h * x.w * x.c > LARGEST:
        x = layers.conv(x, out=4, size=1)
        if x.h > 16 and x.w > 16:
            x = layers.cropped(layers.pool(x))
    choices: list[Callable[[], Map]] = [
        lambda: plain(p, layers, x), lambda: plain(p, layers, x), lambda: separable(p, layers, x),
        lambda: residual(p, layers, x), lambda: branches(p, layers, x), lambda: strided(p, layers, x),
        lambda: layers.pool(x), lambda: layers.padded_conv(x), lambda: layers.transposed(x),
        lambda: layers.squeezed(x), lambda: layers.instance_norm(x), lambda: layers.normalized(x),
        lambda: layers.shuffled(x), lambda: layers.cropped(x), lambda: layers.selected(x),
        lambda: layers.activation(layers.shifted(layers.padded_conv(x))),
        lambda: layers.activation(layers.shifted(layers.transposed(x))),
    ]  # fmt: skip
    if not layers.nchw:
        choices += [lambda: layers.resized(x), lambda: layers.blocks(x), lambda: layers.batched_dilation(x),
                    lambda: layers.activation(layers.shifted(layers.batched_dilation(x)))]  # fmt: skip
        choices += [lambda: lrn(p, x)]
    return p.pick(choices)()


def lrn(p: Program, x: Map) -> Map:
    ref = p.add("LRN", [x.ref], T=FLOAT, depth_radius=p.int(1, 5), bias=1.0, alpha=p.pick([1e-4, 0.1]), beta=0.75)
    return Map(ref, x.n, x.h, x.w, x.c)


def head(p: Program, layers: Layers, x: Map) -> list[str]:
    """The end: classes, a mask, boxes, or the map itself."""
    kind = p.pick(["classes", "flat", "mask", "map", "softmax", "best", "rows"])
    if kind == "map" or x.h * x.w * x.c > 20_000:
        return [x.ref]
    if kind in ("mask", "softmax", "best"):
        y = layers.shifted(layers.conv(x, size=1)) if p.chance() else x
        if kind == "mask":
            return [layers.activation(y, "Sigmoid").ref]
        if kind == "softmax":
            ref = y.ref
            if layers.nchw:
                ref = p.add("Transpose", [ref, p.const([0, 2, 3, 1])], T=FLOAT, Tperm=INT)
            return [p.add(p.pick(["Softmax", "Softmax", "LogSoftmax"]), [ref], T=FLOAT)]
        axis = p.const(1 if layers.nchw else p.pick([3, -1]))
        return [p.add("Max", [y.ref, axis], T=FLOAT, Tidx=INT, keep_dims=p.chance()), y.ref]
    if kind == "rows":
        ref = p.add("Transpose", [x.ref, p.const([0, 2, 3, 1])], T=FLOAT, Tperm=INT) if layers.nchw else x.ref
        return [p.add("Reshape", [ref, p.const([x.n, -1, x.c])], T=FLOAT, Tshape=INT)]
    if kind == "classes":
        keep = p.chance()
        ref = layers.overall(x, p.pick(["Mean", "Mean", "Max", "Sum"]), keep)
        ref = p.add("Reshape", [ref, p.const([-1, x.c])], T=FLOAT, Tshape=INT) if keep else ref
        features = x.c
    else:
        features = x.h * x.w * x.c
        ref = p.add("Reshape", [x.ref, p.const(p.pick([[-1, features], [x.n, -1]]))], T=FLOAT, Tshape=INT)
    return [*dense(p, layers, ref, features)]


def dense(p: Program, layers: Layers, ref: str, features: int) -> list[str]:
    ends = []
    for _ in range(p.int(1, 2)):
        out, turned = p.pick([1, 2, 10, 17]), p.chance(0.3)
        weights = layers.weights(*((out, features) if turned else (features, out)), fan_in=features)
        ref = p.add("MatMul", [ref, weights], T=FLOAT, transpose_a=False, transpose_b=turned)
        ref = p.add(p.pick(["BiasAdd", "AddV2", "Add"]), [ref, layers.weights(out)], T=FLOAT)
        ends.append(ref)
        if p.chance():
            ref = p.add(p.pick(["Relu", "Tanh", "Sigmoid"]), [ref], T=FLOAT)
        features = out
    return [p.add("Softmax", [ref], T=FLOAT)] if p.chance() else [ref, ends[0]]


def network(p: Program, nchw: bool) -> None:
    layers = Layers(p, nchw)
    x = picture(p, layers)
    maps = [x]
    for _ in range(p.int(FEWEST, MOST)):
        x = block(p, layers, x)
        maps.append(x)
    ends = head(p, layers, x)
    p.step(ends)
    if p.chance(0.4):  # a value inside is asked for as well
        p.step([p.pick(maps[1:]).ref, *ends])


@program
def networks(p: Program) -> None:
    network(p, nchw=False)


@program
def channels_first_networks(p: Program) -> None:
    network(p, nchw=True)


@program
def mixed_layout_networks(p: Program) -> None:
    """Channels first and last by turns, with transposes between, as exporters write them."""
    x = picture(p, Layers(p, False))
    layers = Layers(p, False)
    for _ in range(p.int(2, 4)):
        for _ in range(p.int(1, 3)):
            x = block(p, layers, x)
        order = [0, 2, 3, 1] if layers.nchw else [0, 3, 1, 2]
        x = Map(p.add("Transpose", [x.ref, p.const(order)], T=FLOAT, Tperm=INT), x.n, x.h, x.w, x.c)
        layers = Layers(p, not layers.nchw)
    p.step(head(p, layers, x))


@program
def sequence_networks(p: Program) -> None:
    """Convolutions along one axis, products over the last axis, attention: what speech and text models are made of."""
    layers = Layers(p, False)
    n, steps, c = p.pick([1, 1, 2, 4]), p.pick([1, 5, 8, 13, 20]), p.pick([1, 4, 6, 16, 24])
    x = p.new(FLOAT, (n, steps, c), fed=True)
    for _ in range(p.int(2, 6)):
        x, steps, c = sequence_block(p, layers, x, n, steps, c)
    ends = [x]
    if p.chance():
        mean = p.add("Mean", [x, p.const(1)], T=FLOAT, Tidx=INT, keep_dims=False)
        ends = dense(p, layers, mean, c)
    p.step(ends)


def sequence_block(p: Program, layers: Layers, x: str, n: int, steps: int, c: int) -> tuple[str, int, int]:
    """One block over ``x`` [n, steps, c]: what comes out, its steps and its channels."""
    block = p.pick([convolved, convolved, mixed, attended, normalized, bent, gated, cut, rolled, recurrent])
    return block(p, layers, x, n, steps, c)


def convolved(p: Program, layers: Layers, x: str, n: int, steps: int, c: int) -> tuple[str, int, int]:
    """A convolution along the steps, of pictures of one row."""
    k, out, stride = p.pick([1, 2, 3, 5]), p.pick([3, 4, 8, 16]), p.pick([1, 1, 2])
    padding = b"VALID" if steps >= k and p.chance() else b"SAME"
    y = p.add("ExpandDims", [x, p.const(1)], T=FLOAT, Tdim=INT)
    weights = layers.weights(1, k, c, out, fan_in=k * c)
    y = layers.op("Conv2D", [y, weights], strides=(1, stride, stride, 1), padding=padding, data_format=b"NHWC")
    y = p.add("Squeeze", [y], T=FLOAT, squeeze_dims=(1,))
    y = p.add("BiasAdd", [y, layers.weights(out)], T=FLOAT)
    y = p.add(p.pick(["Relu", "Tanh", "Identity"]), [y], T=FLOAT)
    return y, layers.reached(steps, k, stride, padding, (0,)), out


def mixed(p: Program, layers: Layers, x: str, n: int, steps: int, c: int) -> tuple[str, int, int]:
    """The same matrix product for every step."""
    out = p.pick([2, 4, 8, 12])
    if p.chance():
        y = p.add("Reshape", [x, p.const([-1, c])], T=FLOAT, Tshape=INT)
        y = p.add("MatMul", [y, layers.weights(c, out, fan_in=c)], T=FLOAT)
        y = p.add("BiasAdd", [y, layers.weights(out)], T=FLOAT)
        y = p.add("Reshape", [y, p.const([n, steps, out])], T=FLOAT, Tshape=INT)
    else:
        weights = p.pick([layers.weights(c, out, fan_in=c), layers.weights(1, c, out, fan_in=c)])
        y = p.add("BatchMatMulV2", [x, weights], T=FLOAT)
        y = p.add("AddV2", [y, layers.weights(out)], T=FLOAT)
    return p.add(p.pick(["Relu", "Sigmoid", "Elu"]), [y], T=FLOAT), steps, out


def attended(p: Program, layers: Layers, x: str, n: int, steps: int, c: int) -> tuple[str, int, int]:
    """Attention of every step to all."""
    key, value = (p.add("BatchMatMulV2", [x, layers.weights(c, c, fan_in=c)], T=FLOAT) for _ in range(2))
    if p.chance():
        turned = p.add("Transpose", [key, p.const([0, 2, 1])], T=FLOAT, Tperm=INT)
        scores = p.add("BatchMatMulV2", [x, turned], T=FLOAT)
    else:
        scores = p.add("BatchMatMulV2", [x, key], T=FLOAT, adj_y=True)
    scores = p.add("Mul", [scores, p.const(c**-0.5, FLOAT)], T=FLOAT)
    return p.add("BatchMatMulV2", [p.add("Softmax", [scores], T=FLOAT), value], T=FLOAT), steps, c


def normalized(p: Program, layers: Layers, x: str, n: int, steps: int, c: int) -> tuple[str, int, int]:
    """Layer normalization."""
    mean = p.add("Mean", [x, p.const([2])], T=FLOAT, Tidx=INT, keep_dims=True)
    spread = p.add("SquaredDifference", [x, mean], T=FLOAT)
    spread = p.add("Mean", [spread, p.const(-1)], T=FLOAT, Tidx=INT, keep_dims=True)
    factor = p.add("Rsqrt", [p.add("AddV2", [spread, p.const(1e-3, FLOAT)], T=FLOAT)], T=FLOAT)
    factor = p.add("Mul", [factor, layers.uniform(0.5, 1.5, c)], T=FLOAT)
    shift = p.add("Sub", [layers.uniform(-1, 1, c), p.add("Mul", [mean, factor], T=FLOAT)], T=FLOAT)
    return p.add("AddV2", [p.add("Mul", [x, factor], T=FLOAT), shift], T=FLOAT), steps, c


def bent(p: Program, layers: Layers, x: str, n: int, steps: int, c: int) -> tuple[str, int, int]:
    """An activation."""
    name = p.pick(["Relu", "gelu", "swish", "Tanh", "Elu", "Softplus"])
    return layers.activation(Map(x, n, 1, steps, c), name).ref, steps, c


def gated(p: Program, layers: Layers, x: str, n: int, steps: int, c: int) -> tuple[str, int, int]:
    """A gated linear unit."""
    gates = p.add("Split", [p.const(2), p.add("ConcatV2", [x, x, p.const(2)], T=FLOAT, Tidx=INT, N=2)],
                  T=FLOAT, num_split=2)  # fmt: skip
    return p.add("Mul", [p.add("Sigmoid", [gates], T=FLOAT), f"{gates}:1"], T=FLOAT), steps, c


def cut(p: Program, layers: Layers, x: str, n: int, steps: int, c: int) -> tuple[str, int, int]:
    """Without the first and the last step, where there are more."""
    if steps <= 2:
        return bent(p, layers, x, n, steps, c)
    begin, size = p.const([0, 1, 0]), p.const([-1, steps - 2, -1])
    return p.add("Slice", [x, begin, size], T=FLOAT, Index=INT), steps - 2, c


def rolled(p: Program, layers: Layers, x: str, n: int, steps: int, c: int) -> tuple[str, int, int]:
    """The steps in another order."""
    order = p.const(p.rng.permutation(steps), p.pick([INT, LONG]))
    kinds = {"Tindices": next(node for node in p.nodes if node.name == order).attrs["dtype"]}
    return p.add("GatherV2", [x, order, p.const(1)], Tparams=FLOAT, Taxis=INT, **kinds), steps, c


def recurrent(p: Program, layers: Layers, x: str, n: int, steps: int, c: int) -> tuple[str, int, int]:
    """An LSTM written out step by step, as static_rnn does."""
    cells = p.pick([2, 4, 8])
    rows = p.add("Unpack", [x], T=FLOAT, num=steps, axis=1)
    weights, bias = layers.weights(c + cells, 4 * cells, fan_in=c + cells), layers.weights(4 * cells)
    state = hidden = p.const([[0.0] * cells] * n, FLOAT)
    outputs = []
    for step in range(min(steps, 5)):
        row = rows if step == 0 else f"{rows}:{step}"
        both = p.add("ConcatV2", [row, hidden, p.const(1)], T=FLOAT, Tidx=INT, N=2)
        gates = p.add("BiasAdd", [p.add("MatMul", [both, weights], T=FLOAT), bias], T=FLOAT)
        parts = p.add("Split", [p.const(1), gates], T=FLOAT, num_split=4)
        forget = p.add("Sigmoid", [p.add("Add", [f"{parts}:2", p.const(1.0, FLOAT)], T=FLOAT)], T=FLOAT)
        new = p.add("Mul", [p.add("Sigmoid", [parts], T=FLOAT), p.add("Tanh", [f"{parts}:1"], T=FLOAT)], T=FLOAT)
        state = p.add("Add", [p.add("Mul", [state, forget], T=FLOAT), new], T=FLOAT)
        hidden = p.add("Mul", [p.add("Tanh", [state], T=FLOAT), p.add("Sigmoid", [f"{parts}:3"], T=FLOAT)], T=FLOAT)
        outputs.append(hidden)
    return p.add("Pack", outputs, T=FLOAT, N=len(outputs), axis=1), len(outputs), cells
