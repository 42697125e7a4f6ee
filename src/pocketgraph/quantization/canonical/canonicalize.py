"""Rewrites what a graph spells out around its layers, so that they are layers to the quantizer too.

    x ─SPACE_TO_BATCH_ND─ RESHAPE ─CONV_2D─ RESHAPE ─BATCH_TO_SPACE_ND─ y       a dilated convolution along one axis
    x ─BATCH_MATMUL(constant)─ y                                                a FULLY_CONNECTED
    x ─CONV_2D─ RESHAPE ─ADD(bias)─ RELU─ y                                     a CONV_2D with bias and RELU, RESHAPE

Only as layers do weights have a scale for each channel, and biases, factors and activations cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.named_pass import Pass
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.rewriting.activation_fusion import fuse_activations
from pocketgraph.litert.rewriting.deduplication import share_constants
from pocketgraph.litert.rewriting.large_windows import cut_large_windows
from pocketgraph.litert.rewriting.optimize import merge_reshapes
from pocketgraph.litert.rewriting.padding_and_dilation import absorb_padding, batches_as_pictures, dilate
from pocketgraph.litert.rewriting.reshape_sinking import reshape_later
from pocketgraph.litert.rewriting.strength_reduction import (
    choose_among_logits,
    recognise_leaky_rectifiers,
    reshape_instead_of_transposing,
)
from pocketgraph.litert.rewriting.transposed_convolutions import turn_transposed_convolutions
from pocketgraph.litert.rewriting.weight_folding import add_missing_biases, fold_affine
from pocketgraph.litert.rewriting.whole_rows import take_whole_rows
from pocketgraph.quantization.canonical.affine_chains import merge_affine_chains
from pocketgraph.quantization.canonical.function_recognition import recognise_functions
from pocketgraph.quantization.canonical.masked_values import bound_masks
from pocketgraph.quantization.canonical.row_factors import factor_rows
from pocketgraph.quantization.canonical.time_step_batching import batch_time_steps
from pocketgraph.quantization.program_pass import copied, run_passes

MOST_ADDED_ZEROS_SHARE = 0.08
"""Of all weights, that plain convolutions instead of transposed ones may add to the file."""


def canonicalize(program: Program, without: Collection[str] = ()) -> Program:
    """A program that computes the same in fewer operations; tensors inside may have other names and shapes.

    One that has codes already, as graphs with eight-bit nodes do, stays as it is: its sums are of whole numbers.

    Args:
        program: it stays as it is.
        without: the names of passes to leave out, of CANONICAL_PASSES.
    """
    if any(v.quantization is not None for o in program.operations for v in (*o.inputs, *o.outputs) if v is not None):
        return program
    result = copied(program)
    for each in result.programs():
        run_passes(each, CANONICAL_PASSES, without)
        each.drop_unused()
    return result


def needless_passes(io: str, activations: str) -> tuple[str, ...]:
    """The passes that cost accuracy and spare no time where such types go in and out, and lie in between.

    Small devices, and LiteRT's plain loops over int16 codes, take no longer for a large window than for its parts.
    """
    return () if (io, activations) == ("float", "int8") else ("large_windows",)


def _weights(program: Program) -> int:
    """How many elements the constants of floats have."""
    values = {value for operation in program.operations for value in operation.inputs if value is not None}
    return sum(value.size for value in values if value.constant is not None and value.dtype is FLOAT)


def products_as_layers(program: Program) -> None:
    """Makes products by a constant matrix layers, with a bias of their own."""
    for operation in program.operations:
        if operation.code != "BATCH_MATMUL" or operation.options.get("adj_x"):
            continue
        value, matrix = operation.inputs
        if value is None or matrix is None or matrix.constant is None or value.constant is not None:
            continue
        if matrix.dtype is not FLOAT or len(value.shape) < 2 or math.prod(matrix.shape[:-2]) != 1:
            continue
        if operation.outputs[0].shape[:-1] != value.shape[:-1]:
            continue
        constant = matrix.constant.reshaped(matrix.shape[-2:])
        if not operation.options.get("adj_y"):
            constant = constant.permuted((1, 0))
        weights = Value(f"{matrix.name}/weights", FLOAT, constant.shape, constant)
        operation.code, operation.inputs = "FULLY_CONNECTED", [value, weights, None]
        operation.options = {"activation": "", "keep_num_dims": len(value.shape) > 2}


def slopes_by_channel(program: Program) -> None:
    """The larger one of a value and a multiple of it for each channel is a PRELU, one operation instead of two."""
    producers, uses = program.producers(), program.uses()
    for operation in program.operations:
        if operation.code != "MAXIMUM":
            continue
        for value, product in (operation.inputs, operation.inputs[::-1]):
            scaled = producers.get(product) if product is not None else None
            if value is None or scaled is None or scaled.code != "MUL" or product is None or uses[product] != 1:
                continue
            factor = next((v for v in scaled.inputs if v is not None and v.constant is not None), None)
            if value not in scaled.inputs or factor is None or factor.constant is None or scaled.options["activation"]:
                continue
            numbers = factor.constant.numpy()
            if len(value.shape) != 4 or factor.size != value.shape[-1] or not (numbers <= 1).all():
                continue
            alpha = Constant.of(numbers.reshape(1, 1, -1))
            operation.code, operation.options = "PRELU", {}
            operation.inputs = [value, Value(f"{factor.name}/slopes", FLOAT, alpha.shape, alpha)]
            break


def plain_transposed_convolutions(program: Program) -> None:
    """Makes transposed convolutions plain ones, unless the file would grow much by it."""
    turn_transposed_convolutions(program, MOST_ADDED_ZEROS_SHARE * _weights(program))


def layers_of_many_axes(program: Program) -> None:
    """Layers read tensors of many axes themselves, where a reshape lays rows below each other for them and others go on
    with what comes out in any shape."""
    producers, readers = program.producers(), program.consumers()
    replaced: dict[Value, Value] = {}
    for layer in program.operations:
        rows, result = layer.inputs[0] if layer.code == "FULLY_CONNECTED" else None, layer.outputs[0]
        before = producers.get(rows) if rows is not None else None
        if rows is None or before is None or before.code != "RESHAPE" or result in program.outputs:
            continue
        source, after = replaced.get(before.operands[0], before.operands[0]), readers.get(result, [])
        if source.shape[-1:] != rows.shape[-1:] or rows.shape[:-1] != result.shape[:-1]:
            continue
        if source.dtype is not FLOAT or not after or any(each.code != "RESHAPE" for each in after):
            continue
        replaced[result] = made = Value(result.name, result.dtype, (*source.shape[:-1], result.shape[-1]))
        layer.inputs[0], layer.outputs[0], layer.options = source, made, {**layer.options, "keep_num_dims": True}
    program.substitute(replaced)
    merge_reshapes(program)


CANONICAL_PASSES = (
    Pass("finite_masks", "masks of -infinity are a large number, which has a range", bound_masks),
    Pass("one_dimensional_dilation", "batches of steps around a convolution are pictures", batches_as_pictures),
    Pass("dilation", "space to batch and back around a convolution is its dilation", dilate),
    Pass("constant_products", "products by a constant matrix are layers", products_as_layers),
    Pass("affine_before_reshape", "biases and activations move to the layer they are of", reshape_later),
    Pass("affine_folding", "factors and offsets become part of layers", fold_affine),
    Pass("padding_folding", "borders become part of layers", absorb_padding),
    Pass("activation_fusion", "activations become part of layers", fuse_activations),
    Pass("missing_biases", "every layer has a bias", add_missing_biases),
    Pass("affine_chains", "scaling in several steps is one product and one sum", merge_affine_chains),
    Pass("equal_constants", "equal constants are one", share_constants),
    Pass("time_step_batching", "products of a loop's steps with its input are one product", batch_time_steps),
    Pass("leaky_relu", "a maximum of a value and its multiple is a LEAKY_RELU", recognise_leaky_rectifiers),
    Pass("prelu", "the same with a factor for each channel is a PRELU", slopes_by_channel),
    Pass("argmax_of_logits", "the largest logit is chosen without normalizing them", choose_among_logits),
    Pass("function_recognition", "GELU and others are found by their values", recognise_functions),
    Pass("row_factors", "rows of a table that differ much in size have a factor each", factor_rows),
    Pass("reshape_for_transpose", "a transpose that moves nothing is a reshape", reshape_instead_of_transposing),
    Pass("transposed_convolution", "a transposed convolution is a plain one", plain_transposed_convolutions),
    Pass("whole_rows", "a window as wide as the picture takes rows as pixels", take_whole_rows),
    Pass("large_windows", "depthwise convolutions with large windows are sums of small ones", cut_large_windows),
    Pass("reshape_merging", "reshapes in a row are one", merge_reshapes),
    Pass("layers_of_many_axes", "layers take tensors of many axes without reshapes around them", layers_of_many_axes),
)
"""What is done, in order; each can be left out by its name."""
