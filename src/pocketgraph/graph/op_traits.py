"""What is true of each op beside its signature: one row an op in ``op_traits.txt``, asked by trait.

    passes         the result is the input, unchanged
    checks         likewise, after a check that may fail
    placeholder    a value comes in from outside
    constant       holds its value as an attribute
    variable       makes a variable or the handle of one
    reference_variable  makes a variable of TensorFlow 1, read by reference
    reference      takes and gives a reference to a variable, and writes nothing
    control_flow   TensorFlow 1's: enter, exit, merge, next_iteration, switch, loop_condition, each a trait too
    call, branch, loop  TensorFlow 2's control flow: runs functions of the graph's library
    reads_handle   takes a variable's handle and changes nothing
    table          makes a lookup table
    table_lookup   looks keys up in one
    random         draws anew each time; nobody misses a draw whose result is not needed
    uniform_noise  draws uniform numbers, as a dropout does
    normal_noise   draws normal numbers, as a layer of Gaussian noise does
    repeatable     follows from inputs and attributes alone, and graphs repeat it
    view           the same elements under another shape
    gather         takes slices of a tensor along one axis
    moves          only moves elements: what is known of some of them carries over one by one
    joins          likewise, several tensors into one
    shape          looks at the input's shape only
    sized_by_value the result's shape depends on values, and is never larger than the input
    elementwise    each element by itself, of one tensor or of one and a scalar
    polynomial     sums and products, known where they do not depend on what is unknown
    sum, difference, product, quotient, bias
                   arithmetic of two tensors, under all its names
    reciprocal     one divided by each element
    order          says of two numbers which is larger
    select         takes each element from one of two tensors, as a condition says
    resize, pad    makes pictures of another size; adds a border
    array_write, array_read
                   of TensorFlow 1's arrays and 2's lists of tensors
    result_gradient  a gradient that is given the function's result first, and then what comes in
    fake_quantization  rounds to the numbers that codes stand for
    effect         run for what it does, not for a result
    transcendental an exponential, logarithm or power an element: slow
    log_of_sum     the logarithm of a sum with 1
    reduction      one of all elements along axes
    adds_up        each element of the result is a sum, or a mean, of many of the input's
    any_size       what LiteRT is given for it holds for all sizes, as far as each size stays larger than 1
    discontinuous  the result jumps where the operands hardly change
    matrix_product, convolution  products that take long
    fused_batch_norm, batch_norm  normalize with a mean and a variance
    layer          combines values with weights
    heavy          one call computes enough to be worth the way into another engine
    sooner_in_numpy  NumPy takes less time for it than the many operators of LiteRT that it is in a file
    box_selection  non-maximum suppression
    sequence_decoding  labels out of scores for each step of a sequence
    picture_file, recording
                   numbers out of an encoded picture, or out of sound
    example_parser takes records of tf.Example apart
    feeds_training training data come in
    checkpoint     writes or reads the values of variables
    touches_files, runs_code, uses_network
                   reaches out of the graph: refused unless the caller allows it

What the table of signatures knows (state, types, numbers of inputs) is not repeated: ``graph.opdefs``. Kernels, shapes,
lowerings and costs have tables of their own, with the same names. Who needs a set of ops asks for a trait; a list of
names elsewhere says in its docstring why it is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

from pocketgraph.package_data import text_beside

ROWS = text_beside(__file__, "op_traits.txt")
"""A line an op and its traits, in the order of the alphabet."""


@lru_cache(maxsize=1)
def table() -> dict[str, frozenset[str]]:
    """The ops that have each trait."""
    found: dict[str, set[str]] = {}
    for row in ROWS.split("\n"):
        op, *traits = row.split() or [""]
        for trait in traits:
            found.setdefault(trait, set()).add(op)
    return {trait: frozenset(ops) for trait, ops in found.items()}


@cache
def ops_with(*traits: str) -> frozenset[str]:
    """The ops that have any of the traits.

    Raises:
        KeyError: there is no such trait.
    """
    known = table()
    return frozenset().union(*(known[trait] for trait in traits))


BIASED_SUMS = ops_with("sum", "bias")
BINARY_SWITCHES = ops_with("switch") - {"_SwitchN"}
CALLS = ops_with("call")
CALLS_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
"""Not a trait: others that run code run their own kinds."""
CONTRACTIONS = ops_with("matrix_product", "convolution")
CONVOLUTIONS = ops_with("convolution")
CONVOLUTIONS_2D = ("Conv2D", "DepthwiseConv2dNative")
ELEMENTWISE = ops_with("elementwise")
ENTER = ops_with("enter")
EXIT = ops_with("exit")
FEEDS_TRAINING = ops_with("feeds_training")
FUNCTION_CALLS = ops_with("call", "branch", "loop")
FUSED_BATCH_NORMS = ops_with("fused_batch_norm")
GATHERS = ops_with("gather")
HEAVY = ops_with("heavy")
LOOPS = ops_with("loop")
MATRIX_PRODUCTS = ops_with("matrix_product")
MERGE = ops_with("merge")
MOVES = ops_with("moves")
NEXT_ITERATION = ops_with("next_iteration")
NO_DEFAULT_PLACEHOLDERS = ops_with("placeholder") - {"PlaceholderWithDefault"}
PASSES = ops_with("passes")
HANDS_ON = PASSES - {"Snapshot", "XlaSharding"}
"""Ops whose TensorFlow kernels hand on the memory of a variable; the other two pass on a copy."""
PASSES_OR_ENTERS = ops_with("passes", "enter")
PASSES_OR_ROUTES = ops_with("passes", "control_flow")
PICTURE_FILES = ops_with("picture_file")
PLACEHOLDERS = ops_with("placeholder")
PRODUCTS = ops_with("product")
QUOTIENTS = ops_with("quotient")
RANDOM = ops_with("random")
REFERENCES = ops_with("reference")
REFERENCE_VARIABLES = ops_with("variable") & ops_with("reference_variable")
SAME_ELEMENTS = ops_with("passes", "view")
SAME_VALUES = ops_with("passes", "view") | {"Cast"}
SELECTS = ops_with("select")
SLICE_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
"""Attributes of StridedSlice, and options of LiteRT's: a bit for each entry of its operands."""
SOURCES = ops_with("placeholder", "variable", "constant")
STATE_OR_RANDOM = ops_with("variable", "table", "random")
SUMS = ops_with("sum")
VIEWS = ops_with("view") | {"Bitcast"}
"""Ops whose TensorFlow kernels hand on the memory of a variable in another shape or type."""
SWITCH = ops_with("switch")
TABLE_FILLERS = ("InitializeTable", "LookupTableImport")
"""How the names of ops begin that fill a lookup table."""
VARIABLES = ops_with("variable")
"""Sets that several files ask for: one name each, that of the trait."""


_user_ops: frozenset[str] = frozenset()


def user_ops() -> frozenset[str]:
    """The ops whose kernels a user registered, known without importing kernels; another set after each change."""
    return _user_ops


def set_user_ops(ops: frozenset[str]) -> None:
    global _user_ops
    _user_ops = ops


def slice_masks(attr: Callable[[str, int], Any]) -> dict[str, int]:
    """The masks of a StridedSlice by their names without ``_mask``; ``attr`` gives an attribute, or a default."""
    return {name.removesuffix("_mask"): int(attr(name, 0) or 0) for name in SLICE_MASKS}


def sliced_axes(masks: Mapping[str, int], count: int) -> dict[int, int]:
    """The axis that each of ``count`` entries of a StridedSlice's operands speaks of, by its place; behind an ellipsis
    from the end, below zero."""
    taken = [at for at in range(count) if not (masks["new_axis"] | masks["ellipsis"]) >> at & 1]
    dots = next((at for at in range(count) if masks["ellipsis"] >> at & 1), count)
    return {at: nth if at < dots else nth - len(taken) for nth, at in enumerate(taken)}
