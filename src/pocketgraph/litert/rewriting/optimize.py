"""The program passes: all rewritings of a program, in order.

Each has a name, by which it can be left out (``without``); a program computes the same without it, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from pocketgraph.budgets import check_time
from pocketgraph.graph.named_pass import Pass, imported
from pocketgraph.litert.cost_model import DEPTHWISE_WINDOWS, FEWEST_TILED_CHANNELS
from pocketgraph.litert.operator_traits import POOLS
from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.rewriting.activation_fusion import fuse_activations, recognise_activations
from pocketgraph.litert.rewriting.deduplication import merge_equal_operations, share_constants
from pocketgraph.litert.rewriting.narrow_convolutions import widen_narrow_convolutions, write_out_narrow_vectors
from pocketgraph.litert.rewriting.padding_and_dilation import absorb_padding, batches_as_pictures, dilate
from pocketgraph.litert.rewriting.reshape_sinking import reshape_later
from pocketgraph.litert.rewriting.strength_reduction import (
    recognise_leaky_rectifiers,
    reshape_instead_of_transposing,
    scale_without_convolutions,
)
from pocketgraph.litert.rewriting.weight_folding import add_missing_biases, fold_affine
from pocketgraph.litert.rewriting.whole_rows import take_whole_rows


def optimize(program: Program, without: Collection[str] = ()) -> None:
    """Makes the program smaller and faster; it computes the same up to rounding."""
    program.drop_unused()
    _run(program, OPTIMIZE, without)


def optimize_for_latency(program: Program, without: Collection[str] = ()) -> None:
    """Makes an optimized program faster still, where values inside need not be tensors of the graph any more."""
    _run(program, FOR_LATENCY, without)


after_each: Callable[[str, Program], None] | None = None
"""Called with the name of each pass and the program after it; tests check the program here."""


FOR_THIS_PROCESSOR = frozenset(("winograd_training",))
"""Passes that are for this processor: exported programs do without them."""

FOR_FIXED_SIZES = frozenset((
    "absorb_padding", "fold_dilations", "take_fewer_pixels", "take_whole_rows", "choose_whole_rows",
    "winograd_training", "winograd_convolutions", "widen_narrow_convolutions", "write_out_narrow_vectors",
    "cut_large_windows",
))  # fmt: skip
"""Passes after which a program may hold for the sizes alone that it was lowered for."""


def _run(program: Program, passes: tuple[Pass, ...], without: Collection[str]) -> None:
    for each in passes:
        if each.name not in without and each.applies(program):
            each.run(program)
            check_time("while a part was compiled")
            if after_each is not None:
                after_each(each.name, program)
    program.drop_unused()


def _having(*codes: str) -> Callable[[Program], bool]:
    """Whether a program has one of these operators."""
    return lambda program: any(operation.code in codes for operation in program.operations)


def _with_windows(program: Program, code: str, elements: int, channels: int = 1) -> bool:
    """Whether an operator has a window of more elements than these, and at least so many channels in and out."""
    shapes = [each.inputs[1].shape for each in program.operations if each.code == code and each.inputs[1] is not None]
    return any(height * width > elements and min(count, depth) >= channels for count, height, width, depth in shapes)


def may_have_tiles(program: Program) -> bool:
    """Whether a convolution may be one for ``winograd_convolutions``, which takes some time to import."""
    return _with_windows(program, "CONV_2D", 1, FEWEST_TILED_CHANNELS)


def _has_windows_of_one_pixel(program: Program) -> bool:
    """Whether a pooling has a window of one pixel, or a convolution one that moves by several."""
    for operation in program.operations:
        options, weights = operation.options, operation.inputs[1] if operation.code == "CONV_2D" else None
        if operation.code in POOLS and options["filter_h"] == options["filter_w"] == 1:
            return True
        if weights is not None and weights.shape[1:3] == (1, 1) and options["stride_h"] * options["stride_w"] != 1:
            return True
    return False


def _may_code(program: Program) -> bool:
    return any(each.may_code or each.whole is not None or each.code == "QUANTIZE" for each in program.operations)


def _rewriting(module: str, function: str) -> Callable[[Program], None]:
    return imported(f"pocketgraph.litert.rewriting.{module}", function)


def fold_dilations(program: Program) -> None:
    """Space-to-batch around a convolution is a dilation of it."""
    if any(operation.code == "SPACE_TO_BATCH_ND" for operation in program.operations):
        batches_as_pictures(program)
        dilate(program)
        fold_affine(program)


def merge_reshapes(program: Program) -> None:
    """Of reshapes in a row only the last counts; one that changes nothing is none."""
    producers = program.producers()
    replaced: dict[Value, Value] = {}
    for operation in program.operations:
        if operation.code != "RESHAPE":
            continue
        source = operation.inputs[0]
        while source is not None and source in producers and producers[source].code == "RESHAPE":
            operation.nodes = (*producers[source].nodes, *operation.nodes)
            source = producers[source].inputs[0]
        operation.inputs[0] = source
        if source is not None and source.shape == operation.outputs[0].shape:
            replaced[operation.outputs[0]] = source
    program.substitute(replaced)
    program.drop_unused()


SINK = Pass(
    "sink_transposes",
    "transposes meet and cancel out",
    _rewriting("transpose_sinking", "sink_transposes"),
    _having("TRANSPOSE"),
)
MERGE = Pass("merge_reshapes", "of reshapes in a row the last one stays", merge_reshapes)
AFFINE = Pass("fold_affine", "scales and shifts go into weights and biases", fold_affine)
RECOGNISE = Pass("recognise_activations", "activations spelled in several operators are one", recognise_activations)
FUSE = Pass("fuse_activations", "activations become part of the operator before", fuse_activations)

OPTIMIZE: tuple[Pass, ...] = (
    Pass(
        "winograd_training",
        "convolutions with computed weights, and their gradients, multiply less, tile by tile",
        _rewriting("computed_winograd", "convolve_computed_in_tiles"),
        lambda program: any(operation.convolution is not None for operation in program.operations),
    ),
    Pass("merge_equal_operations", "equal operations on equal operands are computed once", merge_equal_operations),
    SINK,
    MERGE,
    AFFINE,
    Pass("fold_dilations", "space-to-batch around a convolution is a dilation", fold_dilations),
    Pass("absorb_padding", "padding becomes part of the convolution", absorb_padding),
    RECOGNISE,
    FUSE,
    Pass("add_missing_biases", "convolutions without a bias get one of zeros", add_missing_biases),
    Pass(
        "use_eight_bits",
        "products of quantized values run on eight-bit kernels",
        _rewriting("eight_bit", "use_eight_bits"),
        _may_code,
    ),
)
FOR_LATENCY: tuple[Pass, ...] = (
    Pass(
        "take_fewer_pixels",
        "pixels that a strided reader skips are not computed",
        _rewriting("skipped_pixels", "take_fewer_pixels"),
        _has_windows_of_one_pixel,
    ),
    Pass("reshape_later", "biases and activations come before a reshape, so that they fuse", reshape_later),
    AFFINE,
    RECOGNISE,
    FUSE,
    Pass(
        "turn_transposed_convolutions",
        "transposed convolutions become plain ones",
        _rewriting("transposed_convolutions", "turn_transposed_convolutions"),
        _having("TRANSPOSE_CONV"),
    ),
    Pass("recognise_leaky_rectifiers", "rectifiers with a slope are one operator", recognise_leaky_rectifiers),
    Pass("scale_without_convolutions", "scaling convolutions become products", scale_without_convolutions),
    Pass(
        "reshape_instead_of_transposing",
        "transposes that move axes of size 1 are reshapes",
        reshape_instead_of_transposing,
    ),
    Pass(
        "choose_whole_rows",
        "choices of whole rows are made by one truth each",
        _rewriting("row_choice", "choose_whole_rows"),
        _having("SELECT_V2"),
    ),
    Pass("take_whole_rows", "slices of whole rows are gathered as such", take_whole_rows),
    MERGE,
    Pass(
        "winograd_convolutions",
        "wide convolutions multiply less, tile by tile",
        _rewriting("winograd", "convolve_in_tiles"),
        may_have_tiles,
    ),
    Pass(
        "widen_narrow_convolutions",
        "convolutions with few channels make several pixels at once",
        widen_narrow_convolutions,
    ),
    Pass("write_out_narrow_vectors", "constant vectors over few channels are written out", write_out_narrow_vectors),
    Pass(
        "cut_large_windows",
        "depthwise convolutions with large windows are sums of small ones",
        _rewriting("large_windows", "cut_large_windows"),
        lambda program: _with_windows(program, "DEPTHWISE_CONV_2D", DEPTHWISE_WINDOWS[-1]),
    ),
    Pass("share_constants", "equal constants are stored once", share_constants),
)
