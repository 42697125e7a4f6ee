"""What is known of a program on its way to eight bits, and at its end: the state that steps read and change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pocketgraph.graph.tensor import Array
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core import step_limits
from pocketgraph.quantization.core.conversion_recipe import ConversionRecipe, ConvertedProgram, quantized_operations
from pocketgraph.quantization.core.observation import Observation
from pocketgraph.quantization.core.program_runner import Samples
from pocketgraph.quantization.core.quantization_options import Progress, QuantizationOptions, silent
from pocketgraph.quantization.core.quantized_weights import QuantizedWeights
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.quantization.core.value_range import Range
from pocketgraph.runtime.comparison.answer_metrics import Comparison


@dataclass
class QuantizationState:
    """A float program and what the steps have found and decided so far.

    Attributes:
        program: the float program; a step that changes it puts another one in its place.
        samples, count: realistic inputs, without labels, and how many there are.
        left_out: the numbers, from 0, of samples that were given and are no more among these.
        options: what the caller wants.
        progress: told how far it is.
        resume: what an interrupted run had found, with the same arguments.
        seen: what values each tensor took.
        ranges: the range chosen for each tensor.
        sensitivity: the noise that each tensor's codes cause alone, as a share of the scores' power.
        kept: operations that stay in float because eight bits would hurt, or because they were named.
        in_float: operations that stay in float because codes would gain nothing there.
        hybrid: layers with int8 weights that quantize their operand themselves and give float results.
        float_scores: results of layers that are to be such when they have codes.
        shifts: for results of layers, by how many steps each channel's codes lie above their numbers.
        weights: the codes of each layer.
        has_float_sums: whether sums of int16 codes are worked out in floats in fitting and comparing layers.
        halves: layers that have float16 weights instead of codes.
        converted: the eight-bit program, once the steps have made it.
        judged: its first outputs beside those of the float program, on all samples that it was judged on.
        are_unseen: whether those are others than it was calibrated with.
        are_forecasts: whether the first output is of numbers, see ``Comparison``.
        notes: what was done and why, a sentence each.
        done: what became of each step, by its name.
    """

    program: Program
    samples: Samples
    count: int
    options: QuantizationOptions
    progress: Progress = silent
    resume: ResumeState = field(default_factory=ResumeState)
    left_out: Sequence[int] = ()
    seen: Mapping[Value, Observation] = field(default_factory=dict)
    ranges: Mapping[Value, Range] = field(default_factory=dict)
    sensitivity: Mapping[Value, float] = field(default_factory=dict)
    kept: list[Operation] = field(default_factory=list)
    in_float: list[Operation] = field(default_factory=list)
    hybrid: list[Operation] = field(default_factory=list)
    float_scores: set[Value] = field(default_factory=set)
    shifts: Mapping[Value, Array] = field(default_factory=dict)
    weights: Mapping[Operation, QuantizedWeights] = field(default_factory=dict)
    has_float_sums: bool = False
    halves: Sequence[Operation] = ()
    converted: ConvertedProgram = field(init=False)
    judged: Comparison | None = None
    are_unseen: bool = False
    are_forecasts: bool = False
    notes: list[str] = field(default_factory=list)
    done: dict[str, str] = field(default_factory=dict)

    @property
    def recipe(self) -> ConversionRecipe:
        """How to convert the program, by what is decided so far."""
        in_float = [*self.kept, *self.in_float]
        options = self.options
        return ConversionRecipe(self.ranges, in_float, self.weights, options.io, self.hybrid, options.bits, self.shifts)

    @property
    def coded(self) -> list[Operation]:
        """The operations that will compute with codes unless more is kept in float, in order."""
        return quantized_operations(self.program, self.recipe)

    @property
    def is_analyzable(self) -> bool:
        """Whether there are few enough operations with codes to weigh and fit them one by one."""
        return len(self.coded) <= step_limits.MOST_ANALYZED_OPERATIONS

    @property
    def range_method(self) -> str:
        """How ranges are chosen: values are cut off only where enough samples show that they are rare."""
        is_wide = self.options.bits == 16 or self.count < step_limits.FEWEST_SAMPLES_TO_CLIP
        return "minmax" if is_wide and self.options.ranges == "auto" else self.options.ranges

    def stay_in_float(self, operations: list[Operation]) -> bool:
        """Leaves these in float as well; whether any of them was not left so before."""
        new = [operation for operation in operations if operation not in self.in_float]
        self.in_float += new
        return bool(new)

    def branch(self, options: QuantizationOptions) -> QuantizationState:
        """A state that goes on from here by other options and leaves this one as it is."""
        return replace(
            self, options=options, notes=list(self.notes), kept=list(self.kept), in_float=list(self.in_float),
            hybrid=list(self.hybrid), float_scores=set(self.float_scores), done=dict(self.done),
        )  # fmt: skip
