"""Quantizes a model whose saved file says how its pictures are scaled and what its classes are called."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial, wraps
from inspect import signature
from typing import Any, ParamSpec

from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.quantization.quantized_model import QuantizedModel
from pocketgraph.quantization.quantizer import quantize as quantized

P = ParamSpec("P")


def _describing(function: Callable[P, QuantizedModel]) -> Callable[P, QuantizedModel]:
    """The function, whose result describes itself where it is saved."""

    @wraps(function)
    def call(*args: P.args, **how: P.kwargs) -> QuantizedModel:
        given = signature(function).bind(*args, **how)
        given.apply_defaults()
        made = function(*args, **how)
        reading = {part.name: given.arguments[part.name] for part in fields(SampleReading) if part.name != "notify"}
        samples = given.arguments["samples"]
        pictures = samples if isinstance(samples, str | os.PathLike) and os.path.isdir(samples) else None
        made.describe = partial(_described, made, given.arguments["labels"], reading, pictures)
        return made

    return call


def _described(
    made: QuantizedModel, labels: Any, reading: Mapping[str, Any], pictures: str | os.PathLike[str] | None
) -> bytes | None:
    """The file with how pictures are scaled, where they are not scaled the usual way, as the nodes that told it are
    part of the first layer now; else None."""
    from pocketgraph.apps.shipping.file_metadata import described_file

    if SampleReading(**reading).scaling(made.graph).mean is None:
        return None
    return described_file(
        made.graph, made.to_described_bytes, outputs=made.outputs, labels=labels, reading=reading, pictures=pictures
    )


quantize = _describing(quantized)
