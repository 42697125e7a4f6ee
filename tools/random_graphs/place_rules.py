"""What may be given to ops that gather, scatter, sort, count and group by places."""

from __future__ import annotations

import numpy as np

from pocketgraph.graph import DType
from random_graphs.growth import Growth
from random_graphs.rules import Given, index, rule


@rule("Gather", "GatherV2")
def gather(g: Growth) -> Given:
    x = g.nonempty(g.types["Tparams"], g.int(1, 4))
    shape = g.shape(x)
    batch = g.int(0, len(shape) - 1) if g.chance(0.25) else 0
    axis = g.int(batch, len(shape) - 1)
    lead = shape[:batch]
    places = g.source(
        g.rng.integers(0, shape[axis], (*lead, *(g.int(0, 3) for _ in range(g.int(0, 2))))), index(g, "Tindices")
    )
    return [x, places, g.const(axis, index(g, "Taxis"))], {"batch_dims": batch}


@rule("GatherNd")
def gather_nd(g: Growth) -> Given:
    x = g.nonempty(g.types["Tparams"], g.int(1, 4))
    depth = g.int(0, len(g.shape(x)))
    lead = [g.int(1, 3) for _ in range(g.int(0, 2))]
    places = np.stack([g.rng.integers(0, s, lead) for s in g.shape(x)[:depth]], -1) if depth else np.zeros((*lead, 0))
    return [x, g.source(places, index(g, "Tindices"))], {}


@rule("ScatterNd")
def scatter_nd(g: Growth) -> Given:
    shape = [g.int(1, 5) for _ in range(g.int(1, 4))]
    depth = g.int(1, len(shape))
    lead = [g.int(0, 4) for _ in range(g.int(1, 2))]
    places = np.stack([g.rng.integers(0, s, lead) for s in shape[:depth]], -1)
    kind = index(g, "Tindices")
    return [g.source(places, kind), g.new(g.types["T"], [*lead, *shape[depth:]]), g.const(shape, kind)], {}


@rule("TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate",
      "ScatterNdNonAliasingAdd")  # fmt: skip
def tensor_scatter(g: Growth) -> Given:
    x = g.nonempty(g.types["T"], g.int(1, 4))
    shape = g.shape(x)
    depth = g.int(1, len(shape))
    lead = [g.int(0, 4)]
    places = np.stack([g.rng.integers(0, s, lead) for s in shape[:depth]], -1)
    return [x, g.source(places, index(g, "Tindices")), g.new(g.types["T"], [*lead, *shape[depth:]])], {}


@rule("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd")
def segment(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=1)
    ids = np.sort(g.rng.integers(0, 5, g.shape(x)[0]))
    return [x, g.source(ids, index(g, "Tindices"))], {}


@rule("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd")
def unsorted(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=1)
    lead = g.shape(x)[: g.int(1, len(g.shape(x)))]
    return [x, g.source(g.rng.integers(-1, 5, lead), index(g, "Tindices")), g.const(5, index(g, "Tnumsegments"))], {}


@rule("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSumWithNumSegments",
      "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments")  # fmt: skip
def sparse_segment(g: Growth) -> Given:
    x = g.nonempty(g.types["T"], g.int(1, 3))
    count = g.int(0, 6)
    places = g.source(g.rng.integers(0, g.shape(x)[0], count), index(g))
    ids = g.source(np.sort(g.rng.integers(0, 5, count)), index(g, "Tsegmentids"))
    return [x, places, ids, g.const(6, index(g, "Tnumsegments"))], {}


@rule("DynamicPartition")
def partition(g: Growth) -> Given:
    x = g.tensor(g.types["T"])
    lead = g.shape(x)[: g.int(0, len(g.shape(x)))]
    return [x, g.source(g.rng.integers(0, 3, lead), DType.named("int32"))], {"num_partitions": 3}


@rule("DynamicStitch", "ParallelDynamicStitch")
def stitch(g: Growth) -> Given:
    count, tail = g.int(1, 3), [g.int(1, 3) for _ in range(g.int(0, 2))]
    total = g.int(count, 8)
    order = np.array_split(g.rng.permutation(total), count)
    places = [g.source(part, DType.named("int32")) for part in order]
    return [*places, *(g.new(g.types["T"], [len(part), *tail]) for part in order)], {"N": count}


@rule("TopK", "TopKV2")
def top_k(g: Growth) -> Given:
    x = g.tensor(g.types["T"], least=1)
    k = g.int(0, g.shape(x)[-1])
    return [x, g.const(k, index(g, "Tk"))], {"k": k, "sorted": True}


@rule("NthElement")
def nth(g: Growth) -> Given:
    x = g.nonempty(g.types["T"], g.int(1, 3))
    return [x, g.const(g.int(0, g.shape(x)[-1] - 1))], {"reverse": g.chance()}


@rule("InTopK", "InTopKV2")
def in_top(g: Growth) -> Given:
    x = g.nonempty(DType.named("float"), 2)
    rows, classes = g.shape(x)
    k = g.int(0, classes + 1)
    return [x, g.source(g.rng.integers(0, classes, rows), g.types["T"]), g.const(k, g.types["T"])], {"k": k}


@rule("Unique", "UniqueWithCounts", "UniqueV2", "UniqueWithCountsV2")
def unique(g: Growth) -> Given:
    x = g.tensor(g.types["T"], rank=1)
    return [x, g.const(np.array([0] if g.chance() else [], np.int64), index(g, "Taxis"))], {}


@rule("ListDiff")
def list_diff(g: Growth) -> Given:
    return [g.tensor(g.types["T"], rank=1), g.tensor(g.types["T"], rank=1)], {}


@rule("Bucketize")
def bucketize(g: Growth) -> Given:
    return [g.tensor(g.types["T"])], {"boundaries": tuple(sorted({float(g.int(-3, 3)) for _ in range(4)}))}


@rule("Bincount", "DenseBincount")
def bincount(g: Growth) -> Given:
    kind = index(g)
    x = g.source(g.rng.integers(0, 8, g.int(0, 6)), kind)
    weights = g.like(g.types["T"], g.shape(x) if g.chance() else (0,))
    return [x, g.const(g.int(1, 8), kind), weights], {"binary_output": g.chance(0.2)}


@rule("InvertPermutation")
def invert(g: Growth) -> Given:
    return [g.source(g.rng.permutation(g.int(0, 6)), g.types["T"])], {}


@rule("UnravelIndex")
def unravel(g: Growth) -> Given:
    dims = [g.int(1, 4) for _ in range(g.int(1, 3))]
    return [g.source(g.rng.integers(0, int(np.prod(dims)), g.int(0, 4)), index(g)), g.const(dims, index(g))], {}


@rule("LowerBound", "UpperBound")
def bound(g: Growth) -> Given:
    rows = g.int(1, 3)
    x = np.sort(g.rng.integers(0, 9, (rows, g.int(0, 6))), -1)
    return [g.source(x, g.types["T"]), g.source(g.rng.integers(0, 10, (rows, g.int(0, 4))), g.types["T"])], {}
