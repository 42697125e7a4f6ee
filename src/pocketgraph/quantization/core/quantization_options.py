"""What the caller of the quantizer wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pocketgraph.errors import UsageError, option

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many steps of it are done, and of how many."""


def silent(stage: str, done: int, total: int) -> None:
    """Tells nobody of a ``stage``, nor that ``done`` of ``total`` steps of it are."""


Mode = Literal["static", "dynamic", "weights"]
Form = Literal["tflite", "pb"]
Activations = Literal["int8", "int16"]
WeightType = Literal["int8", "int4"]
InOut = Literal["float", "int8", "int16", "uint8"]
Ranges = Literal["auto", "minmax", "percentile", "mse", "entropy"]
Rounding = Literal["fitted", "adaround", "corrected", "nearest"]
"""What options may be; the first of each is the default."""


def io_types(activations: str) -> tuple[str, ...]:
    """What may go in and out where tensors have these codes: floats, the codes, or those of eight bits as bytes."""
    return ("float", "int8", "uint8") if activations == "int8" else ("float", activations)


def _check_is_one(name: str, value: object, allowed: Sequence[Any]) -> None:
    if value not in allowed:
        raise UsageError(f"{option(name)} is one of {', '.join(allowed)}, not '{value}'")


@dataclass(frozen=True)
class QuantizationOptions:
    """What the caller wants.

    Attributes:
        ranges: how activation ranges are chosen: ``minmax``, ``percentile``, ``mse``, ``entropy``, or ``auto``, which
            takes for each tensor the one with the least squared error.
        rounding: how weights are: ``fitted`` to the results of their layer, the same with ``adaround`` to choose the
            codes, ``nearest`` with ``corrected`` biases, or just ``nearest``.
        equalize: whether channels are made even across layers first.
        io: what goes in and comes out, one of ``io_types``.
        keep: names of tensors whose operations stay in float.
        float_share: the largest share of the program's multiplications that may stay in float where eight bits hurt,
            and by what share the weights may grow for it.
        widen: the largest share of the program's multiplications that may be added by computing channels of narrow
            tensors several times, so that they get finer steps.
        quiet: decibels; when all tensors' codes together make less noise at the scores, no channels are copied for it.
        loud: decibels; when they make more noise than that all the same, some operations stay in float; when they make
            less, but more than ``quiet``, only where a few operations are much of the noise.
        activations: the type of the tensors, ``int8`` or ``int16``.
        weights: the type of the weights, ``int8`` or ``int4``.
        with_tables: whether constants that are read as floats may be kept in codes; a graph has no place for those.
        without: names of steps to leave out (see quantization_steps.py).
        threads: how many threads to compute with.
        seed: of every choice by chance.

    Raises:
        UsageError: one of them is none of these, or they do not go together.
    """

    ranges: str = "auto"
    rounding: str = "fitted"
    equalize: bool = False
    io: str = "float"
    keep: Sequence[str] = ()
    float_share: float = 0.12
    widen: float = 0.1
    quiet: float = 30.0
    loud: float = 22.0
    activations: str = "int8"
    weights: str = "int8"
    with_tables: bool = True
    without: Sequence[str] = ()
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        _check_is_one("rounding", self.rounding, get_args(Rounding))
        _check_is_one("ranges", self.ranges, get_args(Ranges))
        _check_is_one("activations", self.activations, get_args(Activations))
        _check_is_one("weights", self.weights, get_args(WeightType))
        _check_is_one("io", self.io, io_types(self.activations))
        for name, share in (("float_share", self.float_share), ("widen", self.widen)):
            if not 0 <= share <= 1:
                raise UsageError(f"{option(name)} is a share from 0 to 1, not {share:g}", hint="0.1 is a tenth")

    @property
    def bits(self) -> int:
        """Of the tensors' codes."""
        return 16 if self.activations == "int16" else 8


def check_together(
    form: str, mode: str, has_samples: bool, types: Mapping[str, str], of_static: Mapping[str, object]
) -> None:
    """Refuses what does not go together; ``of_static`` are the options that calibrating alone has, None where unset."""
    _check_is_one("mode", mode, get_args(Mode))
    _check_is_one("form", form, get_args(Form))
    if form == "pb":
        for name in ("activations", "weights"):
            if types[name] != "int8":
                raise UsageError(
                    f"{option(name)}={types[name]} is for .tflite files", hint="or leave it out for a .pb file"
                )
        if mode == "dynamic":
            hint = "transform_graph's quantize_nodes makes graphs"
            raise UsageError(f"{option('mode')}=dynamic is for .tflite files", hint=hint)
        if types["io"] != "float":
            raise UsageError(
                "a .pb file has float inputs and outputs", hint=f"leave {option('io')} out, or write a .tflite file"
            )
    if mode == "static" and not has_samples:
        raise UsageError(
            "no samples are given",
            hint=f"pass {option('calibrate', 'samples')}=DIR|NPZ|LIST, or {option('mode')}=dynamic",
        )
    if mode == "static":
        return
    for name, given in of_static.items():
        if given is not None:
            raise UsageError(
                f"{option(name)} is for {option('mode')}=static; {option('mode')}={mode} does not use it",
                hint=f"leave {option(name)} out",
            )
