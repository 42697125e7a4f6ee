"""What goldens of an op show and lack: types, attributes, broadcasting, empty and scalar inputs, NaN and infinities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import GraphError
from pocketgraph.graph import DType, Node, opdefs
from pocketgraph.kernels.ranks import RANKS
from random_graphs import breaking
from random_graphs.making import UNUSED, Registered
from random_graphs.rules import BROADCASTING

FLOATING = ("float", "double", "half", "bfloat16", "complex64", "complex128")
FORMATS = (b"NHWC", b"NCHW", b"NDHWC", b"NCDHW", b"NCHW_VECT_C", b"NHWC_VECT_W", b"HWNC", b"HWCN")
SILENT = ("shared_name", "container", "use_cudnn_on_gpu", "message", "name", "config", "parallel_iterations")
"""Attributes that change no result."""


def shown(node: Node, inputs: Sequence[Any]) -> set[str]:
    """The features of one case: ``T=float``, ``padding=SAME``, ``depth_radius≠``, ``broadcast``, ``empty`` …"""
    definition = opdefs.definition(node.op)
    found = set()
    for name, attr in definition.attrs.items():
        value = node.attrs.get(name, attr.default)
        if isinstance(value, DType):
            found.add(f"{name}={value.name}")
        elif attr.kind == "bool" or (attr.kind == "string" and attr.allowed):
            found.add(f"{name}={text_of(value)}")
        elif attr.default is not None and value != attr.default:
            found.add(f"{name}≠")
    arrays = [value for value in inputs if isinstance(value, np.ndarray)]
    if len({value.shape for value in arrays}) > 1:
        found.add("broadcast")
    if any(value.size == 0 for value in arrays):
        found.add("empty")
    if arrays and any(value.ndim == 0 for value in arrays[:1]):
        found.add("scalar")
    for value in arrays:
        if value.dtype.kind in "fcV":
            found |= {"nan"} if np.isnan(value).any() else set()
            found |= {"inf"} if np.isinf(value).any() else set()
    return found


def wanted(op: str, registered: Registered) -> set[str]:
    """The features that goldens of an op should show, as far as its signature and TensorFlow's kernels tell."""
    definition = opdefs.definition(op)
    found = set()
    for name, attr in definition.attrs.items():
        if attr.kind == "type":
            found |= {f"{name}={kind}" for kind in types(op, name, registered)}
        elif name in SILENT:
            continue
        elif attr.kind == "bool":
            found |= {f"{name}=True", f"{name}=False"}
        elif attr.kind == "string" and attr.allowed:
            found |= {f"{name}={text_of(value)}" for value in attr.allowed if value not in FORMATS[4:]}
        elif attr.default is not None and attr.kind not in ("shape", "tensor", "func"):
            found.add(f"{name}≠")
    if op in BROADCASTING:
        found.add("broadcast")
    if definition.inputs:
        found.add("empty")
        if RANKS.get(op, "*")[0] in "*0v=":
            found.add("scalar")
    if any(takes_floats(arg, op, registered) for arg in definition.inputs):
        found |= {"nan", "inf"}
    return found


def types(op: str, name: str, registered: Registered) -> set[str]:
    """The types that a type attribute may have in some CPU kernel, but for those that hold no numbers or texts."""
    numbers: set[int] = set()
    for kernel in registered.get(op, []):
        numbers.update(kernel.get(name) or ())
    allowed = {kind.name for kind in opdefs.definition(op).attrs[name].allowed if isinstance(kind, DType)}
    found = {kind.name for kind in map(known_type, numbers) if kind is not None} - set(UNUSED)
    return found & allowed if allowed else found


def known_type(number: int) -> DType | None:
    """The type of this number; None when it is one of a newer TensorFlow."""
    try:
        return DType.of(number)
    except GraphError:
        return None


def takes_floats(arg: opdefs.Arg, op: str, registered: Registered) -> bool:
    """Whether an input may hold floats."""
    if arg.dtype is not None:
        return arg.dtype.name in FLOATING
    return bool(arg.type_attr) and bool(types(op, arg.type_attr, registered) & set(FLOATING))


def text_of(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def lacking(goldens: Mapping[str, Sequence[Any]], op: str, registered: Registered) -> set[str]:
    """What the goldens of an op do not show."""
    seen: set[str] = set()
    for case in goldens.get(op, ()):
        seen |= shown(case.node, case.inputs)
    return wanted(op, registered) - seen


def gaps(ops: set[str], registered: Registered) -> dict[str, set[str]]:
    """What the goldens of these ops lack (of all that have any, when empty), but of ops on variables and resources."""
    cases = breaking.goldens(ops)
    for group in ("summaries", "pictures"):  # single nodes too, compared in ways of their own
        for case in breaking.cases(group):
            cases.setdefault(case.node.op, []).append(case)
    known = [op for op in sorted(ops or cases) if op in registered and not is_on_handles(op)]
    found = {op: lacking(cases, op, registered) for op in known}
    return {op: features for op, features in found.items() if features}


def is_on_handles(op: str) -> bool:
    """Whether an op takes or gives a variable or another resource, or has no inputs at all."""
    definition = opdefs.find(op)
    if definition is None or not definition.inputs:
        return True
    arguments = (*definition.inputs, *definition.outputs)
    return any(arg.is_ref or (arg.dtype and arg.dtype.name in ("resource", "variant")) for arg in arguments)
