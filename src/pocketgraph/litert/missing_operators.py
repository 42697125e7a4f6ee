"""Operators that a model file asks for and its run time does not have, and what LiteRT says of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pocketgraph.graph.model_file_graph import ONNX_PREFIX

CUSTOM_OP = "tfl.custom."
"""How the op of a custom operator's node begins in the graph of a .tflite file."""
OF_LITERT = frozenset(("AudioSpectrogram", "Mfcc", "NumericVerify", "TFLite_Detection_PostProcess"))
"""Custom operators that LiteRT's own resolver registers (tensorflow/lite/core/kernels/register.cc)."""
REGISTERED = "the program that the file is for registers it, as MediaPipe does with operators of its own"
CUSTOM = r"unresolved custom op: (\S+?)\.?(\s|$)"


def unregistered(ops: Iterable[str]) -> list[str]:
    """The custom operators among the ops of a .tflite or .onnx file's graph that only the program registers that it is
    for; those of an .onnx file say their domain.

    >>> unregistered(["tfl.add", "tfl.custom.Mfcc", "tfl.custom.Blur", "onnx.Relu", "onnx.com.acme.Warp"])
    ['Blur', 'com.acme.Warp']
    """
    every = list(ops)
    custom = {op.removeprefix(CUSTOM_OP) for op in every if op.startswith(CUSTOM_OP)}
    onnx = {op.removeprefix(ONNX_PREFIX) for op in every if op.startswith(ONNX_PREFIX)}
    return sorted((custom - OF_LITERT) | {op for op in onnx if "." in op})


def missing_operator(said: str) -> str:
    """What is missing where LiteRT's message is of a custom operator that nobody registered; "" where it is not.

    >>> missing_operator("Encountered unresolved custom op: Blur.\\nSee instructions: https://…")
    "LiteRT has no operator 'Blur', which the file asks for by name"
    """
    found = re.search(CUSTOM, said)
    return f"LiteRT has no operator '{found[1]}', which the file asks for by name" if found else ""
