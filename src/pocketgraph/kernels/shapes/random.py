"""Shape rules of random tensors."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, Shape
from pocketgraph.kernels.shapes.algebra import broadcast, dims_of, of_rank
from pocketgraph.kernels.shapes.common_rules import held_by, scalar, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("RandomShuffle")(unchanged)
shape_rule("StatelessRandomGetAlg")(scalar)
shape_rule(
    "RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "ParameterizedTruncatedNormal",
    "StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal", "StatelessRandomUniformInt",
    "StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2", "StatelessRandomUniformIntV2",
    "StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2", "StatelessRandomGammaV2",
    "StatelessRandomGammaV3", "StatelessRandomPoisson", "StatelessRandomBinomial",
)(held_by(0))  # fmt: skip


shape_rule("RandomGamma", "RandomPoisson", "RandomPoissonV2")(
    lambda call: Shape(dims_of(call.as_shape(0)) + call.dims(1))
)


@shape_rule("Multinomial", "StatelessMultinomial")
def multinomial(call: ShapeCall) -> Shape:
    rows, _ = of_rank(call.shape(0), 2)
    return Shape((rows, call.integer(1)))


@shape_rule("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def random_key(call: ShapeCall) -> Sequence[Shape]:
    key = [Shape((1,)), Shape((2,))]
    return key if call.node.op == "StatelessRandomGetKeyCounter" else [*key, SCALAR]


@shape_rule("RandomIndexShuffle")
def shuffled_indices(call: ShapeCall) -> Shape:
    index, _, last = call.inputs
    return broadcast(broadcast(index, Shape(call.dims(1)[:-1])), last)
