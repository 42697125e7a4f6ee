"""Numbers and values as the original tools print them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pocketgraph.graph import DType, Tensor

SUMMARY_ELEMENTS = 3  # how many values a tensor's debug string shows


def human_readable(number: int) -> str:
    """A count in the original tools' form: ``999``, ``1.00k``, ``23.89M``; from 10^15 on as in ``1.25E+15``.

    The unit steps by integer division, so 1,999,999 prints as ``2.00M``.
    """
    if number < 0:
        return "-" + human_readable(-number)
    if number < 1000:
        return str(number)
    if number >= 10**15:
        mantissa, _, exponent = f"{number:.2E}".partition("E")
        shortest = mantissa.rstrip("0").rstrip(".")
        return f"{shortest}E{exponent}"
    units = iter("kMBT")
    unit = next(units)
    while number >= 1_000_000:
        number //= 1000
        unit = next(units)
    return f"{number / 1000.0:.2f}{unit}"


def short_float(value: float, digits: int, exact_digits: int, kind: Any) -> str:
    """The ``%g`` text with ``digits`` digits, or with ``exact_digits`` when that does not read back as ``value``."""
    if math.isnan(value):
        return "nan"
    text = f"{value:.{digits}g}"
    return text if kind(float(text)) == kind(value) else f"{value:.{exact_digits}g}"


def element_text(value: Any, dtype: DType) -> str:
    """One element as TensorFlow's tensor debug string shows it."""
    name = dtype.base.name
    if name in ("float", "half", "bfloat16"):
        return short_float(float(value), 6, 9, np.float32)
    if name == "double":
        return short_float(float(value), 15, 17, np.float64)
    if name == "bool":
        return "1" if value else "0"
    if name == "string":
        return c_escape(bytes(value))
    if dtype.is_integer or dtype.is_quantized:
        return str(int(value))
    return "?"


_ESCAPES = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}


def c_escape(text: bytes) -> str:
    """Bytes as a C string literal shows them, without the quotes: ``\\n``, ``\\"``, ``\\377``."""
    return "".join(_ESCAPES.get(b) or (chr(b) if 0x20 <= b < 0x7F else f"\\{b:03o}") for b in text)


def summarize_values(tensor: Tensor, limit: int = SUMMARY_ELEMENTS) -> str:
    """The first ``limit`` values in TensorFlow's bracketed form, ``[1 2 3...]...`` for a [2,4] tensor of 1 to 8."""
    total = tensor.size
    limit = min(limit, total)
    flat = tensor.numpy().reshape(-1)[:limit].tolist() if limit else []
    shown = [element_text(value, tensor.dtype) for value in flat]
    if not tensor.shape:
        return " ".join(shown)
    parts: list[str] = []
    used = 0

    def print_dimension(axis: int) -> None:
        nonlocal used
        if axis == len(tensor.shape) - 1:
            for i in range(tensor.shape[axis]):
                if used >= limit:
                    if axis != 0:
                        parts.append("...")
                    return
                parts.append((" " if i else "") + shown[used])
                used += 1
            return
        for _ in range(tensor.shape[axis]):
            if used >= limit:
                return
            parts.append("[")
            print_dimension(axis + 1)
            parts.append("]")

    print_dimension(0)
    return "".join(parts) + ("..." if total > limit else "")


def debug_string(tensor: Tensor) -> str:
    """``Tensor<type: float shape: [2,4] values: [1 2 3...]...>``, as the original tools print constants."""
    shape = ",".join(str(size) for size in tensor.shape)
    return f"Tensor<type: {tensor.dtype.name} shape: [{shape}] values: {summarize_values(tensor)}>"
