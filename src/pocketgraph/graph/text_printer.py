"""Prints nodes, attributes and tensors in the text form, which ``graph.text_format`` describes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.graph.attr import AttrValue, Func, Opaque, Parameter
from pocketgraph.graph.dtype import BOOL, STRING, DType
from pocketgraph.graph.shape import Shape
from pocketgraph.graph.tensor import Tensor

BARE_NAME = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./>\\-]*")
BARE_REF = re.compile(r"\^?[A-Za-z0-9_.][A-Za-z0-9_./>\\-]*(?::[A-Za-z0-9_]+)*")

FEW = 16  # elements: a larger tensor is abbreviated
SHORT = 256  # bytes: a longer string is abbreviated
_PLAIN = re.compile(rb'[^\x20-\x7e]|["\\]')


def is_shape_key(key: str) -> bool:
    """Whether an integer list under this attribute name is a shape."""
    return key == "shape" or key.endswith("_shape")


def node_line(
    name: str, op: str, inputs: Sequence[str], attrs: Mapping[str, AttrValue], device: str, *, full: bool = False
) -> str:
    """A node with these fields as one line; with ``full`` every value of large tensors too."""
    rest = dict(attrs)
    parts = []
    value = rest.get("value")
    if op == "Const" and isinstance(value, Tensor) and rest.get("dtype") is value.dtype:
        del rest["dtype"], rest["value"]
        parts.append(print_tensor(value, full=full))
    parts += [quoted_unless(BARE_REF, given) for given in inputs]
    parts += [f"{quoted_unless(BARE_NAME, key)}={print_attr(value, key, full=full)}" for key, value in rest.items()]
    placed = f" @{quoted(device.encode())}" if device else ""
    return f"{quoted_unless(BARE_NAME, name)} = {quoted_unless(BARE_NAME, op)}({', '.join(parts)}){placed}"


def print_attr(value: AttrValue, key: str = "", *, full: bool = False) -> str:
    """An attribute's value; ``key`` is the attribute's name, which tells shapes from lists."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return print_float(value)
    if isinstance(value, bytes):
        return quoted(value) if full or len(value) <= SHORT else f"bytes[{len(value)}]"
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Shape):
        listed = value.dims is None or None in value.dims or is_shape_key(key)
        return repr(value) if listed else f"shape{value!r}"
    if isinstance(value, Tensor):
        return f"tensor({print_tensor(value, full=full)})"
    if isinstance(value, Func):
        inner = [f"{quoted_unless(BARE_NAME, k)}={print_attr(v, k, full=full)}" for k, v in value.attrs.items()]
        return f"func({', '.join([quoted_unless(BARE_NAME, value.name), *inner])})"
    if isinstance(value, Parameter):
        return f"${quoted_unless(BARE_NAME, value.name)}"
    if isinstance(value, Opaque):
        return f"opaque({quoted(value.encoded)})"
    members = [repr(m) if isinstance(m, Shape) else print_attr(m, full=full) for m in value]
    integers = all(isinstance(m, int) and not isinstance(m, bool) for m in value)
    return ("list[" if integers and is_shape_key(key) else "[") + ",".join(members) + "]"


def print_tensor(tensor: Tensor, *, full: bool = False) -> str:
    """``float [0.1, 0.2]``, ``int32 3``, ``float[3,3,64,128]`` when it is large and ``full`` is not set."""
    sizes = "[" + ",".join(str(size) for size in tensor.shape) + "]"
    has_values = tensor.dtype.base.name not in ("resource", "variant", "INVALID")
    if not has_values or (tensor.size > FEW and not full):
        return tensor.dtype.name + sizes
    if tensor.dtype.base is STRING and not full and tensor.nbytes > SHORT:
        return tensor.dtype.name + sizes
    if tensor.size == 0:
        return f"{tensor.dtype.name}{sizes} []" if tensor.shape != (0,) else f"{tensor.dtype.name} []"
    return f"{tensor.dtype.name} {_nested(tensor.numpy(), tensor.dtype.base)}"


def _nested(values: np.ndarray[Any, Any], dtype: DType) -> str:
    if values.ndim:
        return "[" + ", ".join(_nested(np.asarray(row, dtype=values.dtype), dtype) for row in values) + "]"
    item: Any = values[()]
    if dtype is STRING:
        return quoted(item)
    if dtype is BOOL:
        return "true" if item else "false"
    if values.dtype.kind in "iu":
        return str(int(item))
    if values.dtype.kind == "c":
        return repr(complex(item)).strip("()")
    if values.dtype.kind == "f":
        return _with_point(str(item))
    number = float(item)  # the small types of ml_dtypes
    return str(int(number)) if dtype.name in ("int4", "uint4") else repr(number)


def print_float(value: float) -> str:
    """The shortest spelling that gives this 32-bit float again."""
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    return _with_point(str(narrow)) if float(narrow) == value else repr(value)


def _with_point(text: str) -> str:
    return text if any(mark in text for mark in ".en") else text + ".0"  # "n": inf, nan


def quoted(text: bytes) -> str:
    """A string between double quotes; what is not printable ASCII becomes ``\\xNN``."""
    return '"' + _PLAIN.sub(lambda found: _escape(found[0]), text).decode("ascii") + '"'


def quoted_unless(bare: re.Pattern[str], name: str) -> str:
    """The name as it is where ``bare`` matches all of it, else between quotes."""
    return name if bare.fullmatch(name) else quoted(name.encode("utf-8", "surrogateescape"))


def _escape(character: bytes) -> bytes:
    known = {b"\n": b"\\n", b"\t": b"\\t", b"\r": b"\\r", b'"': b'\\"', b"\\": b"\\\\"}
    return known.get(character) or b"\\x%02x" % character[0]
