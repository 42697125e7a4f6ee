"""Programs of what is kept from run to run beside variables: staging areas, barriers, generators, samplers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.graph import DType, Shape
from random_graphs import values
from random_graphs.programs import FLOAT, INT, LONG, TEXT, Program, ports, program, some_shape


@program
def choosing_queues(p: Program) -> None:
    """Queues that give by chance or by number."""
    dtype, shape = DType.named(p.pick(["float", "int32", "string"])), some_shape(p)
    by_number = p.chance()
    common: dict[str, Any] = {"capacity": 40, "shared_name": f"q{len(p.nodes)}".encode(), "container": b""}
    common |= {"component_types": (dtype,), "shapes": (Shape(shape),)}
    if by_number:
        queue = p.add("PriorityQueueV2", **common)
    else:
        seeds = {"seed": p.int(1, 99), "seed2": p.int(0, 99)}
        queue = p.add("RandomShuffleQueueV2", min_after_dequeue=0, **seeds, **common)
    kinds = (LONG, dtype) if by_number else (dtype,)
    left = p.int(2, 12)
    numbers = [p.const(p.rng.integers(0, left, left), LONG)] if by_number else []
    filled = [*numbers, p.const(values.array(p.rng, dtype, (left, *shape)), dtype)]
    p.step([], [p.add("QueueEnqueueManyV2", [queue, *filled], Tcomponents=kinds)])
    while left > 0:
        count = p.int(1, left)
        op = p.pick(["QueueDequeueManyV2", "QueueDequeueV2"])
        inputs = [queue, p.const(count)] if op.endswith("ManyV2") else [queue]
        p.step(ports(p.add(op, inputs, component_types=kinds), len(kinds)))
        left -= count if op.endswith("ManyV2") else 1


@program
def staging(p: Program) -> None:
    dtypes = tuple(DType.named(p.pick(["float", "int32", "string", "int64"])) for _ in range(p.int(1, 3)))
    common: dict[str, Any] = {"dtypes": dtypes, "shared_name": f"a{len(p.nodes)}".encode(), "container": b""}
    size = p.add("StageSize", **common)
    held = p.int(1, 4)
    for _ in range(held):
        element = [p.new(dtype, some_shape(p)) for dtype in dtypes]
        p.step([], [p.add("Stage", element, **common)])
    p.step([size])
    p.step(ports(p.add("StagePeek", [p.const(p.int(0, held - 1))], **common), len(dtypes)))
    for _ in range(p.int(0, held)):
        p.step(ports(p.add("Unstage", **common), len(dtypes)))
    p.step([], [p.add("StageClear", **common)])
    p.step([size])


@program
def staging_by_key(p: Program) -> None:
    ordered = "Ordered" if p.chance() else ""
    dtypes = tuple(DType.named(p.pick(["float", "int32", "string"])) for _ in range(p.int(1, 3)))
    common: dict[str, Any] = {"dtypes": dtypes, "shared_name": f"m{len(p.nodes)}".encode(), "container": b""}
    sizes = [p.add(f"{ordered}Map{word}", **common) for word in ("Size", "IncompleteSize")]
    keys = p.rng.permutation(9)[: p.int(1, 4)].tolist()
    for key in keys:
        places = p.rng.permutation(len(dtypes)).tolist()
        cut = p.int(0, len(places) - 1)
        for part in filter(None, (sorted(places[:cut]), sorted(places[cut:]))):
            element = [p.new(dtypes[place], some_shape(p)) for place in part]
            inputs = [p.const(key, LONG), p.const(part), *element]
            fake = tuple(dtypes[place] for place in part)
            p.step([], [p.add(f"{ordered}MapStage", inputs, fake_dtypes=fake, **common)])
            p.step(sizes)
    every = p.const(list(range(len(dtypes))))
    p.step(ports(p.add(f"{ordered}MapPeek", [p.const(keys[-1], LONG), every], **common), len(dtypes)))
    p.step(ports(p.add(f"{ordered}MapUnstage", [p.const(keys[0], LONG), every], **common), len(dtypes)))
    if ordered and len(keys) > 1:
        p.step(ports(p.add("OrderedMapUnstageNoKey", [every], **common), len(dtypes) + 1))
    p.step(sizes)


@program
def barriers(p: Program) -> None:
    dtypes = tuple(DType.named(p.pick(["float", "int32", "string"])) for _ in range(p.int(1, 2)))
    shapes = [some_shape(p) for _ in dtypes]
    made = p.add(
        "Barrier", component_types=dtypes, shapes=tuple(Shape(s) for s in shapes), capacity=-1,
        shared_name=f"b{len(p.nodes)}".encode(), container=b"",
    )  # fmt: skip
    words = np.array([b"k%d" % n for n in p.rng.permutation(6)], object)
    complete = p.int(1, 6)
    for place, (dtype, shape) in enumerate(zip(dtypes, shapes, strict=True)):
        some = words if place == 0 and len(dtypes) > 1 else words[:complete]
        filled = p.const(values.array(p.rng, dtype, (len(some), *shape)), dtype)
        p.step([], [p.add("BarrierInsertMany", [made, p.const(some, TEXT), filled], T=dtype, component_index=place)])
    p.step([p.add("BarrierReadySize", [made]), p.add("BarrierIncompleteSize", [made])])
    taken = p.add(
        "BarrierTakeMany", [made, p.const(p.int(1, complete))], component_types=dtypes, allow_small_batch=False,
        wait_for_incomplete=False, timeout_ms=-1,
    )  # fmt: skip
    p.step(ports(taken, len(dtypes) + 2))


@program
def tables_of_buckets(p: Program) -> None:
    """Tables with a key for what is empty; keys may be vectors."""
    value = p.pick([FLOAT, LONG])
    width = () if p.chance() else (p.int(1, 3),)
    shape = p.pick([(), (), (2,)])
    common: dict[str, Any] = {"key_dtype": LONG, "value_dtype": value, "value_shape": Shape(shape)}
    empty, deleted = (p.const(np.full(width, number), LONG) for number in (-100, -101))
    made = p.add("MutableDenseHashTableV2", [empty, deleted], shared_name=f"d{len(p.nodes)}".encode(),
                 initial_num_buckets=p.pick([4, 8, 64]), max_load_factor=0.8, **common)  # fmt: skip
    keys = p.rng.permutation(20)[: p.int(1, 6)]
    rows = np.stack([keys] * width[0], -1) if width else keys
    held = p.const(values.array(p.rng, value, (len(keys), *shape)), value)
    p.step([], [p.add("LookupTableInsertV2", [made, p.const(rows, LONG), held], Tin=LONG, Tout=value)])
    asked, default = p.const(rows[::-1] + p.int(0, 1), LONG), p.const(values.array(p.rng, value, shape), value)
    found = p.add("LookupTableFindV2", [made, asked, default], Tin=LONG, Tout=value)
    size = p.add("LookupTableSizeV2", [made])
    p.step([found, size])
    p.step([], [p.add("LookupTableRemoveV2", [made, p.const(rows[:2], LONG)], Tin=LONG)])
    p.step([found, size])


@program
def generators(p: Program) -> None:
    """tf.random.Generator: draws that move a variable on."""
    place = p.add("VarHandleOp", dtype=LONG, shape=Shape([3]), shared_name=f"g{len(p.nodes)}".encode())
    start = p.const(p.rng.integers(-(2**62), 2**62, 3), LONG)
    p.step([], [p.add("AssignVariableOp", [place, start], dtype=LONG)])
    state, algorithm = p.add("ReadVariableOp", [place], dtype=LONG), p.const(1, LONG)
    for _ in range(p.int(1, 4)):
        shape = p.const(np.array(some_shape(p), np.int64), LONG)
        op = p.pick(["StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulUniformInt",
                     "StatefulUniformFullInt", "RngSkip"])  # fmt: skip
        if op == "RngSkip":
            p.step([], [p.add(op, [place, algorithm, p.const(p.int(0, 99), LONG)])])
        elif op == "StatefulUniformInt":
            kind = p.pick([INT, LONG])
            bounds = [p.const(-p.int(0, 9), kind), p.const(p.int(1, 90), kind)]
            p.step([p.add(op, [place, algorithm, shape, *bounds], dtype=kind, shape_dtype=LONG)])
        else:
            whole = op == "StatefulUniformFullInt"
            kind = DType.named(p.pick(["int32", "int64"] if whole else ["float", "double"]))
            p.step([p.add(op, [place, algorithm, shape], dtype=kind, shape_dtype=LONG)])
        p.step([state])


@program
def samplers(p: Program) -> None:
    """Candidate samplers, run after run."""
    classes, columns = p.int(2, 40), p.int(1, 2)
    true = p.const(p.rng.integers(0, classes, (p.int(1, 3), columns)), LONG)
    unique = p.chance()
    op = p.pick(["UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
                 "ThreadUnsafeUnigramCandidateSampler", "FixedUnigramCandidateSampler"])  # fmt: skip
    common: dict[str, Any] = {"num_true": columns, "num_sampled": p.int(1, classes), "unique": unique}
    common |= {"range_max": classes, "seed": p.int(1, 99), "seed2": p.int(0, 99)}
    if op.startswith("Fixed"):
        common |= {"unigrams": tuple(float(w) for w in p.rng.integers(1, 9, classes)), "distortion": 0.75}
    drawn = p.add(op, [true], **common)
    hits = p.add("ComputeAccidentalHits", [true, drawn], num_true=columns)
    for _ in range(3):
        p.step([*ports(drawn, 3), *ports(hits, 3)] if unique else ports(drawn, 3))
