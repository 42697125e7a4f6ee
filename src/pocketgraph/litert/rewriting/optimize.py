"""All rewritings of a program, in order."""

from __future__ import annotations

from pocketgraph.litert.program import Program, Value
from pocketgraph.litert.rewriting.activations import fuse_activations, recognise_activations
from pocketgraph.litert.rewriting.borders import absorb_padding, dilate
from pocketgraph.litert.rewriting.eight_bit import use_eight_bits
from pocketgraph.litert.rewriting.large_windows import cut_large_windows
from pocketgraph.litert.rewriting.late_reshapes import reshape_later
from pocketgraph.litert.rewriting.layout import sink_transposes
from pocketgraph.litert.rewriting.linear import add_missing_biases, fold_affine
from pocketgraph.litert.rewriting.shared import share_constants
from pocketgraph.litert.rewriting.simpler import (
    flatten_inside_products,
    recognise_leaky_rectifiers,
    reshape_instead_of_transposing,
    scale_without_convolutions,
)
from pocketgraph.litert.rewriting.strides import take_fewer_pixels
from pocketgraph.litert.rewriting.transposed import turn_transposed_convolutions
from pocketgraph.litert.rewriting.whole_rows import take_whole_rows
from pocketgraph.litert.rewriting.widths import widen_narrow_convolutions, write_out_narrow_vectors


def optimize(program: Program) -> None:
    """Makes the program smaller and faster; it computes the same up to rounding."""
    program.drop_unused()
    sink_transposes(program)
    merge_reshapes(program)
    fold_affine(program)
    if any(operation.code == "SPACE_TO_BATCH_ND" for operation in program.operations):
        dilate(program)
        fold_affine(program)
    absorb_padding(program)
    recognise_activations(program)
    fuse_activations(program)
    add_missing_biases(program)
    use_eight_bits(program)
    program.drop_unused()


def optimize_for_latency(program: Program) -> None:
    """Makes an optimized program faster still, where values inside need not be tensors of the graph any more."""
    take_fewer_pixels(program)
    reshape_later(program)
    fold_affine(program)
    recognise_activations(program)
    fuse_activations(program)
    turn_transposed_convolutions(program)
    recognise_leaky_rectifiers(program)
    scale_without_convolutions(program)
    reshape_instead_of_transposing(program)
    take_whole_rows(program)
    merge_reshapes(program)
    flatten_inside_products(program)
    widen_narrow_convolutions(program)
    write_out_narrow_vectors(program)
    cut_large_windows(program)
    share_constants(program)
    program.drop_unused()


def merge_reshapes(program: Program) -> None:
    """Of reshapes in a row only the last counts; one that changes nothing is none."""
    producers = program.producers()
    replaced: dict[Value, Value] = {}
    for operation in program.operations:
        if operation.code != "RESHAPE":
            continue
        source = operation.inputs[0]
        while source is not None and source in producers and producers[source].code == "RESHAPE":
            source = producers[source].inputs[0]
        operation.inputs[0] = source
        if source is not None and source.shape == operation.outputs[0].shape:
            replaced[operation.outputs[0]] = source
    program.substitute(replaced)
    program.drop_unused()
