"""Signatures of ops written as text, in the words of TensorFlow's REGISTER_OP: ``x: T``, ``values: N * T``,
``limit: float = 1.0``, ``T: {float, half} = float``, ``N: int >= 2``.

https://www.tensorflow.org/guide/create_op#attrs
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

from pocketgraph.errors import GraphError
from pocketgraph.graph.attr import AttrValue
from pocketgraph.graph.dtype import DType
from pocketgraph.graph.opdefs import Arg, AttrDef, OpDef
from pocketgraph.graph.shape import Shape

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OP_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(>[A-Za-z_][A-Za-z0-9_.]*)*")
ATTRIBUTE = re.compile(
    r"(?P<kind>(list\s*\(\s*)?(\w+|\{[^}]*\})(\s*\))?)\s*(>=\s*(?P<minimum>\d+))?\s*(=\s*(?P<default>.+))?", re.DOTALL
)
KINDS = ("int", "float", "bool", "string", "type", "shape", "tensor", "func")


def define(
    op: str, inputs: Iterable[str], outputs: Iterable[str], attrs: Iterable[str] = (), *, stateful: bool = False
) -> OpDef:
    """The signature of an op.

    Args:
        op: its name.
        inputs, outputs: one ``NAME: TYPE`` each. A type is a type's name (``float``, ``int32``, ``string``), the name
            of an attribute that holds it (``T``; declared by being used), ``N * TYPE`` for as many tensors as the
            attribute ``N`` says, or the name of an attribute of kind ``list(type)``.
        attrs: one ``NAME: KIND`` each, where a kind is ``int``, ``float``, ``bool``, ``string``, ``type``, ``shape``,
            ``tensor``, ``func``, ``list(KIND)``, or the allowed types or strings in braces; ``>= N`` and
            ``= DEFAULT`` may follow.
        stateful: whether it may give different results for the same inputs, or has effects.

    Raises:
        GraphError: one of them cannot be read, or two have one name; the message shows it.
    """
    if not OP_NAME.fullmatch(op):
        raise GraphError(f"'{op}' cannot be the name of an op", hint="it is made of letters, digits and _, like MyOp")
    declared: dict[str, AttrDef] = {}
    for text in attrs:
        attr = _attribute(op, text)
        if attr.name in declared:
            raise GraphError(f"{op} has two attributes called '{attr.name}'")
        declared[attr.name] = attr
    described = [[_argument(op, text, declared) for text in texts] for texts in (inputs, outputs)]
    for arguments in described:
        names = [argument.name for argument in arguments]
        if len(set(names)) < len(names):
            raise GraphError(f"{op} has two inputs or two outputs of one name: {', '.join(names)}")
    return OpDef(op, tuple(described[0]), tuple(described[1]), MappingProxyType(declared), stateful=stateful)


def _split(op: str, text: str) -> tuple[str, str]:
    name, colon, rest = (part.strip() for part in text.partition(":"))
    if not colon or not rest or not NAME.fullmatch(name):
        raise GraphError(f"the signature of {op} has '{text}'", hint="write NAME: TYPE, like 'x: float' or 'x: T'")
    return name, rest


def _argument(op: str, text: str, attrs: dict[str, AttrDef]) -> Arg:
    name, kind = _split(op, text)
    number, times, member = (part.strip() for part in kind.partition("*"))
    if not times:
        number, member = "", kind
    if not NAME.fullmatch(member) or (times and not NAME.fullmatch(number)):
        raise GraphError(f"the signature of {op} has '{text}'", hint="a type is like float, T or N * T")
    if number:
        found = attrs.setdefault(number, AttrDef(number, "int", minimum=1))
        if found.kind != "int":
            raise GraphError(f"the attribute '{number}' of {op}, which counts '{name}', is {found.kind} and not int")
    if member not in attrs and _is_type(member):
        if DType.named(member).is_ref:
            raise GraphError(
                f"'{name}' of {op} is a reference to a variable", hint="take and give values: leave out _ref"
            )
        return Arg(name, DType.named(member), number_attr=number)
    found = attrs.setdefault(member, AttrDef(member, "type"))
    if found.kind == "list(type)" and not number:
        return Arg(name, type_list_attr=member)
    if found.kind != "type":
        raise GraphError(f"the attribute '{member}' of {op}, the type of '{name}', is {found.kind} and not type")
    return Arg(name, type_attr=member, number_attr=number)


def _is_type(name: str) -> bool:
    try:
        DType.named(name)
    except (GraphError, KeyError, ValueError):
        return False
    return True


def _attribute(op: str, text: str) -> AttrDef:
    name, rest = _split(op, text)
    found = ATTRIBUTE.fullmatch(rest)
    if found is None:
        raise _unreadable(op, text)
    kind, listed = found["kind"].replace(" ", ""), False
    if kind.startswith("list("):
        listed, kind = True, kind[5:].removesuffix(")")
    allowed: tuple[DType | bytes, ...] = ()
    if kind.startswith("{"):
        words = [word.strip() for word in kind.strip("{}").split(",") if word.strip()]
        is_text = bool(words) and all(word[0] in "'\"" for word in words)
        try:
            allowed = tuple(ast.literal_eval(w).encode() if is_text else DType.named(w) for w in words)
        except (GraphError, KeyError, ValueError, SyntaxError):
            raise _unreadable(op, text) from None
        kind = "string" if is_text else "type"
    if kind not in KINDS:
        raise _unreadable(op, text)
    whole = f"list({kind})" if listed else kind
    minimum = None if found["minimum"] is None else int(found["minimum"])
    default = None
    if found["default"] is not None:
        try:
            default = _default(kind, listed, found["default"].strip())
        except (GraphError, KeyError, ValueError, SyntaxError, TypeError):
            raise _unreadable(op, text) from None
        wrong = [v for v in (default if listed else (default,)) if allowed and v not in allowed]  # type: ignore[union-attr]
        if wrong:
            raise GraphError(f"the default of the attribute '{name}' of {op} is none of those it allows: '{text}'")
    return AttrDef(name, whole, default, allowed, minimum)


def _default(kind: str, listed: bool, text: str) -> AttrValue:
    """A default of this kind.

    Raises:
        ValueError, SyntaxError, TypeError, GraphError: it is none.
    """
    if kind == "type":
        names = [part.strip() for part in text.strip("[]").split(",") if part.strip()] if listed else [text]
        types = tuple(DType.named(name) for name in names)
        return types if listed else types[0]
    value = ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    if listed:
        return tuple(_one(kind, member) for member in value)
    found: AttrValue = _one(kind, value)
    return found


def _one(kind: str, value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "string" and isinstance(value, str):
        return value.encode()
    if kind == "bool" and isinstance(value, bool):
        return value
    if kind == "int" and is_number and isinstance(value, int):
        return value
    if kind == "float" and is_number:
        return float(value)
    if kind == "shape" and isinstance(value, list | tuple):
        return Shape(value)
    raise ValueError(kind)


def _unreadable(op: str, text: str) -> GraphError:
    return GraphError(
        f"the signature of {op} has the attribute '{text}'",
        hint=f"write NAME: KIND or NAME: KIND = DEFAULT; kinds are {', '.join(KINDS)}, list(KIND), {{float, half}}",
    )


def text_of(definition: OpDef) -> str:
    """A signature in one line, for messages: ``Clip01(x: T) -> (y: T)``."""
    sides = (
        ", ".join(f"{arg.name}: {_type_text(arg)}" for arg in args) for args in (definition.inputs, definition.outputs)
    )
    return "{}({}) -> ({})".format(definition.name, *sides)


def _type_text(arg: Arg) -> str:
    kind = arg.dtype.name if arg.dtype else arg.type_attr or arg.type_list_attr
    return f"{arg.number_attr} * {kind}" if arg.number_attr else kind
