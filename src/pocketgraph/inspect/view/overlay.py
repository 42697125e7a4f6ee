"""What is known of a graph's nodes beside the graph: times and engines of a run, and what eight bits lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from pocketgraph.errors import FormatError
from pocketgraph.formats.files import mapped
from pocketgraph.graph import Node, node_name
from pocketgraph.graph.model_file_graph import SCALES, ZERO_POINTS
from pocketgraph.runtime import StepTrace
from pocketgraph.runtime.description import Description

Figures = TypeVar("Figures")
MEASURES = ("activation_noise", "from_weights", "weight_noise")
"""The figures by which layers are ranked, the best one first; decibels."""
FIGURES = (
    ("activation_noise", "left at the scores", " dB"), ("snr", "left here", " dB"),
    ("from_weights", "left by its weights alone", " dB"), ("from_operand", "left by its operand alone", " dB"),
    ("from_steps", "left by the steps", " dB"), ("from_cutting", "left by what is cut off", " dB"),
    ("scale", "scale", ""),
)  # fmt: skip
"""Keys of a layer in the report of ``quantize``, what they are called here, and their unit."""


@dataclass(frozen=True)
class OverlayFigures:
    """What eight bits did to a tensor.

    Attributes:
        sensitivity: decibels that are left of the model's results, or of the layer's, where those were not measured;
            None for a layer that was not measured.
        figures: names and values, in words.
    """

    sensitivity: float | None
    figures: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Overlay:
    """What is known of a graph's nodes.

    Attributes:
        trace: a run, with its times.
        description: what runs where, and why not on LiteRT.
        layers: what eight bits did, by name of node.
    """

    trace: StepTrace | None = None
    description: Description | None = None
    layers: Mapping[str, OverlayFigures] = field(default_factory=dict)


def read_layers(path: str) -> dict[str, OverlayFigures]:
    """The layers of the report that ``quantize`` writes as JSON, by name of the node that makes each.

    Raises:
        FormatError: the file is no such report.
    """
    return layers_of_report(path, _layer)


def layers_of_report(path: str, figures: Callable[[Mapping[str, Any], str], Figures]) -> dict[str, Figures]:
    """What there is to say of each layer of such a report, by name of its node.

    Args:
        path: the file.
        figures: says it, of the layer's entries and the name of the one that tells the decibels that are left.

    Raises:
        FormatError: the file is no such report.
    """
    hint = "give the .json file that quantize writes beside its report"
    try:
        layers = json.loads(bytes(mapped(path)))["layers"]
        measure = next((key for key in MEASURES if any(layer.get(key) is not None for layer in layers)), MEASURES[0])
        return {node_name(str(layer["name"])): figures(layer, measure) for layer in layers}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError("this is no report of quantize", where=path, hint=hint) from error


def layer_in_file(node: Node) -> OverlayFigures | None:
    """The scale and the range of an eight-bit tensor of a .tflite file, which are attributes of the node there."""
    scales, zeros, types = (node.attrs.get(key) for key in (SCALES, ZERO_POINTS, "output_types"))
    if not (isinstance(scales, tuple) and isinstance(zeros, tuple) and isinstance(types, tuple)):
        return None
    if not scales or not zeros or not types or not scales[0] or np.dtype(types[0].numpy).kind not in "iu":
        return None
    codes = np.iinfo(types[0].numpy)
    low, high = ((code - zeros[0]) * scales[0] for code in (codes.min, codes.max))
    said = [("computed in", "codes"), ("values with codes", f"{low:.4g} … {high:.4g}"), ("scale", f"{scales[0]:.4g}"),
            ("zero point", str(zeros[0]))]  # fmt: skip
    return OverlayFigures(None, tuple(said))


def _layer(layer: Mapping[str, Any], measure: str) -> OverlayFigures:
    sensitivity = layer.get(measure)
    said = []
    for low, high, what in (("low", "high", "values seen"), ("chosen_low", "chosen_high", "values with codes")):
        if layer.get(low) is not None and layer.get(high) is not None:
            said.append((what, f"{layer[low]:.4g} … {layer[high]:.4g}"))
    said += [(title, f"{layer[key]:.4g}{unit}") for key, title, unit in FIGURES if layer.get(key) is not None]
    if layer.get("clipped"):
        said.append(("cut off", f"{layer['clipped']:.2%} of the values"))
    if layer.get("action"):
        said.append(("what was done", str(layer["action"])))
    in_float = bool(layer.get("in_float"))
    said.insert(0, ("computed in", "float" if in_float else "codes"))
    return OverlayFigures(None if sensitivity is None or in_float else float(sensitivity), tuple(said))
