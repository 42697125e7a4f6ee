"""Shape rules of ops on sparse tensors (joined, cut, added, reduced), of sets, of texts cut up, and of random keys."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pocketgraph.graph.shape import SCALAR, UNKNOWN, Shape
from pocketgraph.kernels.shapes.algebra import Dim, of_rank
from pocketgraph.kernels.shapes.rules import Call, shape_rule

VECTOR = Shape((None,))


def _rank(call: Call, indices: int) -> Dim:
    """How many axes the sparse tensor has whose indices are this input."""
    return of_rank(call.shape(indices), 2)[1]


def _sparse(rank: Dim) -> list[Shape]:
    return [Shape((None, rank)), VECTOR, Shape((rank,))]


@shape_rule("SparseAdd", "SparseSlice", "SparseConcat")
def one_sparse(call: Call) -> Sequence[Shape]:
    return _sparse(_rank(call, 0))


@shape_rule("SparseSplit")
def sparse_split(call: Call) -> Sequence[Shape]:
    count = call.count("num_split")
    return [shape for shape in _sparse(_rank(call, 1)) for _ in range(count)]


@shape_rule("SparseSparseMaximum", "SparseSparseMinimum")
def sparse_extreme(call: Call) -> Sequence[Shape]:
    return _sparse(_rank(call, 0))[:2]


@shape_rule("SparseAddGrad")
def sparse_add_gradient(call: Call) -> Sequence[Shape]:
    return [Shape((of_rank(call.shape(i), 2)[0],)) for i in (1, 2)]


@shape_rule("SparseSliceGrad")
def sparse_slice_gradient(call: Call) -> Shape:
    return Shape((of_rank(call.shape(1), 2)[0],))


@shape_rule("SparseSoftmax", "SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv")
def sparse_values(call: Call) -> Shape:
    return Shape(of_rank(call.shape(1), 1))


@shape_rule("SparseReduceSum", "SparseReduceMax")
def sparse_reduction(call: Call) -> Shape:
    return UNKNOWN


@shape_rule("SparseReduceSumSparse", "SparseReduceMaxSparse")
def sparse_reduction_to_sparse(call: Call) -> Sequence[Shape]:
    return _sparse(_rank(call, 0) if call.attr("keep_dims", False) else None)


@shape_rule("DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToSparseSetOperation")
def set_operation(call: Call) -> Sequence[Shape]:
    if call.node.op == "SparseToSparseSetOperation":
        return _sparse(_rank(call, 0))
    return _sparse(call.shape(0).rank)


@shape_rule("SetSize")
def set_size(call: Call) -> Shape:
    sizes = call.as_shape(2)
    return UNKNOWN if sizes.dims is None or not sizes.dims else Shape(sizes.dims[:-1])


@shape_rule("UnicodeTranscode")
def transcoded(call: Call) -> Shape:
    return call.shape(0)


@shape_rule("UnicodeDecode", "UnicodeDecodeWithOffsets")
def decoded(call: Call) -> Sequence[Shape]:
    sizes = call.shape(0).dims
    count: Dim = None
    if sizes is not None and None not in sizes:
        count = math.prod(s for s in sizes if s is not None) + 1
    return [Shape((count,))] + [VECTOR] * (1 if call.node.op == "UnicodeDecode" else 2)


@shape_rule("UnicodeEncode")
def encoded(call: Call) -> Shape:
    splits = of_rank(call.shape(1), 1)[0]
    return VECTOR if splits is None else Shape((max(splits - 1, 0),))


@shape_rule("StringNGrams")
def n_grams(call: Call) -> Sequence[Shape]:
    return [VECTOR, Shape(of_rank(call.shape(1), 1))]


@shape_rule("StatelessRandomGetAlg")
def random_algorithm(call: Call) -> Shape:
    return SCALAR


@shape_rule("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def random_key(call: Call) -> Sequence[Shape]:
    key = [Shape((1,)), Shape((2,))]
    return key if call.node.op == "StatelessRandomGetKeyCounter" else [*key, SCALAR]


@shape_rule(
    "StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2", "StatelessRandomGammaV2",
    "StatelessRandomGammaV3", "StatelessRandomPoisson", "StatelessRandomBinomial",
)  # fmt: skip
def random_of_a_shape(call: Call) -> Shape:
    return call.as_shape(0)
