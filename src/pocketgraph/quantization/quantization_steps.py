"""The steps of quantization, in order: to add one, write its file and add its row.

Steps of the analysis run once; those of the conversion run again for each share of operations in float that a budget
tries. Names of optional steps, of the passes of the canonical form and of the file's can be given as ``without``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pocketgraph.errors import UsageError, did_you_mean, option
from pocketgraph.quantization.canonical import depthwise_affine
from pocketgraph.quantization.canonical.canonicalize import CANONICAL_PASSES
from pocketgraph.quantization.channels import (
    channel_equalization,
    channel_replication,
    cross_layer_equalization,
    input_equalization,
)
from pocketgraph.quantization.conversion import constant_compression, int8_conversion
from pocketgraph.quantization.core.operator_rules import is_layer
from pocketgraph.quantization.core.quantization_state import QuantizationState
from pocketgraph.quantization.fitting import weight_fitting
from pocketgraph.quantization.mixed_precision import (
    float_epsilons,
    float_layers,
    float_partition,
    recurrent_layers,
    sensitivity,
    whole_numbers,
)
from pocketgraph.quantization.observing import calibration, calibration_checks, outliers
from pocketgraph.quantization.ranges import mask_ranges, range_margin, range_selection, trained_ranges, whole_ranges
from pocketgraph.quantization.serialization.tflite_bytes import FILE_PASSES
from pocketgraph.quantization.weight_only import code_bodies, layers_in_bodies


@dataclass(frozen=True)
class QuantizationStep:
    """A step over the state of a quantization.

    Attributes:
        name: what it is called in reports and in ``without``.
        does: what it is for, a sentence.
        run: does it; whether it changed anything.
        applies: whether there is anything for it to do.
        is_optional: whether it can be left out.
    """

    name: str
    does: str
    run: Callable[[QuantizationState], bool]
    applies: Callable[[QuantizationState], bool] = lambda state: True
    is_optional: bool = True


def has_float_ends(state: QuantizationState) -> bool:
    """Whether floats go in and come out, so that some of what is next to them may stay so."""
    return state.options.io == "float"


def is_int8(state: QuantizationState) -> bool:
    """Whether tensors have eight bits; what makes steps finer is not for sixteen."""
    return state.options.bits == 8


def is_fitted(state: QuantizationState) -> bool:
    """Whether more than plain rounding is asked for."""
    return state.options.rounding != "nearest"


def has_chosen_ranges(state: QuantizationState) -> bool:
    """Whether ranges were chosen by what was seen, and then weighed."""
    is_chosen = state.options.ranges == "auto" and state.done["trained_ranges"] != "done"
    return is_int8(state) and is_chosen and bool(state.sensitivity)


def check_layers(state: QuantizationState) -> bool:
    """Refuses a model without layers to quantize."""
    has_layers = (
        state.hybrid
        or any(map(is_layer, state.coded))
        or (state.options.with_tables and layers_in_bodies(state.program, fewest=1))
    )
    if not has_layers:
        hint = "it has no convolutions or matrix products"
        in_bodies = layers_in_bodies(state.program, fewest=1)
        if in_bodies or any(is_layer(operation) for operation in state.program.operations):
            hint = "all its layers stay in float; .tflite files hold codes of more of them than graphs do"
        raise UsageError("no layer of this model can be quantized", hint=hint)
    return False


def round_only(state: QuantizationState) -> bool:
    """Goes on without what takes too long for programs of very many operations."""
    state.notes.append(
        f"{len(state.coded)} operations are too many to weigh and fit one by one: weights are just rounded"
    )
    state.options = replace(state.options, rounding="nearest", float_share=0.0)
    return True


def use_float_sums(state: QuantizationState) -> bool:
    """Has fitting work out sums of int16 codes in floats, for which LiteRT has quick kernels."""
    state.has_float_sums = True
    return True


Step = QuantizationStep
ANALYSIS_STEPS = (
    Step("weight_check", "weights that are not finite are refused", calibration_checks.check, is_optional=False),
    Step("depthwise_affine", "factors by channel in front of a layer become a depthwise layer, with a scale for each",
         depthwise_affine.apply),
    Step("calibration", "which values each tensor takes over the samples", calibration.calibrate, is_optional=False),
    Step("outlier_removal", "samples that reach many times as far as all others do not decide the ranges",
         outliers.leave_out_outliers, lambda state: state.options.ranges == "auto"),
    Step("cross_layer_equalization", "channels far from even are made so where the next layer's weights make up for it",
         cross_layer_equalization.apply, lambda state: state.options.equalize or is_fitted(state)),
    Step("channel_equalization", "channels are made even where the layers around them can undo it for nothing",
         channel_equalization.apply, lambda state: is_int8(state) and is_fitted(state)),
    Step("range_selection", "which of the values seen get codes", range_selection.select_ranges, is_optional=False),
    Step("range_margin", "codes reach further than the samples where other inputs are likely to",
         range_margin.apply, lambda state: not is_int8(state) or state.options.ranges == "auto"),
    Step("mask_ranges", "masks of attention reach no lower than a softmax tells apart", mask_ranges.apply),
    Step("trained_ranges", "a quantization-aware training's ranges are taken, and its rounding in float is left out",
         trained_ranges.apply, is_optional=False),
    Step("named_layers", "layers that are named stay in float", float_layers.keep_named, is_optional=False),
    Step("float_softmax", "the outputs' normalization stays in float, where it costs little; in 16 bits all wide ones",
         float_layers.keep_normalizations, has_float_ends),
    Step("float_preparation", "what is computed of the inputs before the first layer stays in float",
         float_layers.keep_preparation, has_float_ends),
    Step("float_epsilons", "what is added so that a logarithm or a quotient stays finite stays in float",
         float_epsilons.keep_epsilons, has_float_ends),
    Step("whole_numbers", "whole numbers on their way to integers stay in float, as a code may lie just below one",
         whole_numbers.keep_whole_numbers),
    Step("recurrent_layers", "layers in the steps of a loop quantize their operand anew, as rounding would add up",
         recurrent_layers.apply,
         lambda state: is_int8(state) and (has_float_ends(state) or state.options.float_share > 0)),
    Step("float_partition", "what computes faster in float stays in float, conversions counted in",
         float_partition.apply, lambda state: is_int8(state) and state.is_analyzable),
    Step("layer_check", "a model without a layer to quantize is refused", check_layers, is_optional=False),
    Step("sensitivity", "what the codes of each tensor alone do to the scores, which the next steps decide by",
         sensitivity.measure_sensitivity, lambda state: state.is_analyzable),
    Step("whole_ranges", "loud tensors get codes for all values seen where that leaves less noise at the scores",
         whole_ranges.apply, has_chosen_ranges),
    Step("input_equalization", "what comes in gets finer codes where they are much of the noise",
         input_equalization.apply, lambda state: has_float_ends(state) and is_int8(state) and bool(state.sensitivity)),
)  # fmt: skip

CONVERSION_STEPS = (
    Step("size_limit", "a program of too many operations is only rounded", round_only,
         lambda state: not state.is_analyzable, is_optional=False),
    Step("float_scores", "the last layer's results are floats, so that no score is cut off",
         float_layers.choose_float_scores, lambda state: has_float_ends(state) and is_int8(state)),
    Step("channel_replication", "channels are computed several times with staggered steps, which makes them finer",
         channel_replication.apply, lambda state: is_int8(state) and is_fitted(state) and bool(state.sensitivity)),
    Step("mixed_precision", "the stretch of operations that spares most noise for its work stays in float",
         sensitivity.keep_most_sensitive, lambda state: bool(state.sensitivity) and state.options.float_share > 0),
    Step("hybrid_scores", "layers of float_scores that still have codes become hybrid ones",
         float_layers.use_float_scores, lambda state: bool(state.float_scores), is_optional=False),
    Step("sums_in_floats", "sums of int16 codes are worked out in floats while weights are fitted and layers compared",
         use_float_sums, lambda state: not is_int8(state)),
    Step("weight_fitting", "the codes of the weights, by the option rounding", weight_fitting.apply, is_optional=False),
    Step("conversion", "the program is rewritten", int8_conversion.apply, is_optional=False),
    Step("loop_weights", "layers in loops and branches quantize their operand anew, as rounding would add up in rounds",
         code_bodies, lambda state: state.options.with_tables and bool(layers_in_bodies(state.program, fewest=1))),
    Step("constant_compression", "large constants that are read as floats are kept in eight bits",
         constant_compression.apply, lambda state: state.options.with_tables),
)  # fmt: skip


def run_steps(state: QuantizationState, steps: Sequence[QuantizationStep]) -> None:
    """Runs the steps that apply, in order, and writes down what became of each."""
    for step in steps:
        if step.name in state.options.without and step.is_optional:
            state.done[step.name] = "left out"
        elif not step.applies(state):
            state.done[step.name] = "does not apply"
        else:
            state.done[step.name] = "done" if step.run(state) else "nothing to do"


def purposes() -> dict[str, str]:
    """What each step and pass is for, by its name, in the order in which they run."""
    rows = (*CANONICAL_PASSES, *ANALYSIS_STEPS, *CONVERSION_STEPS, *FILE_PASSES)
    return {row.name: row.does for row in rows}


def optional_names() -> tuple[str, ...]:
    """What can be left out."""
    steps = [step.name for step in (*ANALYSIS_STEPS, *CONVERSION_STEPS) if step.is_optional]
    return (*(row.name for row in CANONICAL_PASSES), *steps, *(row.name for row in FILE_PASSES))


def check_names(names: Sequence[str]) -> None:
    """Refuses names of no step.

    Raises:
        UsageError: there is no step of such a name, or it cannot be left out.
    """
    for name in names:
        if name not in optional_names():
            what = "cannot be left out" if name in purposes() else "is no step"
            hint = did_you_mean(name, optional_names()) or f"there are {', '.join(optional_names())}"
            raise UsageError(f"{option('without')}: '{name}' {what}", hint=hint)
