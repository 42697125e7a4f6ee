"""Reads the text form of a graph; ``graph.text_format`` describes and prints it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pocketgraph.errors import GraphError, did_you_mean
from pocketgraph.graph.attr import AttrValue, Func, Opaque, Parameter, kind_of
from pocketgraph.graph.dtype import BOOL, STRING, DType
from pocketgraph.graph.graph import Graph
from pocketgraph.graph.node import Node
from pocketgraph.graph.shape import Shape
from pocketgraph.graph.tensor import Tensor
from pocketgraph.graph.text_printer import BARE_NAME, BARE_REF, is_shape_key

MOST_ELEMENTS = 1 << 26  # of one tensor that the text fills with a single value
DEEPEST = 64  # nested lists and functions
INT64 = range(-(1 << 63), 1 << 63)

_BLANK = re.compile(r"(?:[ \t\r]|#[^\n]*)*")
_BLANK_OR_LINES = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf|nan)(?![A-Za-z0-9_.])")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ELEMENT = re.compile(r"[^\s,\[\]()\"#]+")
_SIZES = re.compile(r"\[([0-9, ]*)\]")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b'"': b'"', b"\\": b"\\"}


def parse(text: str, *, inputs: Iterable[str] = (), outputs: Iterable[str] = ()) -> Graph:
    """The graph that a text in the form of ``graph.text_format`` describes.

    Attributes stay as they are written: none is invented, save ``dtype`` and ``value`` of ``Const(float [0.5])``.
    Blank lines, and what follows a ``#``, are skipped; between parentheses a line may break.

    Args:
        text: one node a line.
        inputs: what the graph will be fed with.
        outputs: what will be fetched from it.

    Raises:
        GraphError: the text is not in that form, with line and column; or two nodes share a name.
    """
    return Graph(_TextReader(text).nodes(), inputs=inputs, outputs=outputs)


class _TextReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def nodes(self) -> list[Node]:
        found: list[Node] = []
        while True:
            self.skip(_BLANK_OR_LINES)
            if self.at == len(self.text):
                return found
            found.append(self.node())
            self.skip(_BLANK)
            if self.at < len(self.text) and self.text[self.at] != "\n":
                raise self.error("expected the end of the line after a node")

    def node(self) -> Node:
        name = self.name("a node name")
        self.skip(_BLANK)
        self.expect("=")
        self.skip(_BLANK)
        op = self.name("an op")
        self.skip(_BLANK)
        self.expect("(")
        inputs: list[str] = []
        attrs: dict[str, AttrValue] = {}
        first = True
        while not self.closes(")", first):
            if first and op == "Const" and self.starts_tensor():
                value = self.tensor()
                attrs.update(dtype=value.dtype, value=value)
            else:
                self.argument(inputs, attrs)
            first = False
        self.skip(_BLANK)
        device = ""
        if self.text.startswith("@", self.at):
            self.at += 1
            device = _decoded(self.string())
        return Node(name, op, inputs, attrs, device)

    def argument(self, inputs: list[str], attrs: dict[str, AttrValue]) -> None:
        start = self.at
        if self.text.startswith('"', self.at):
            name = _decoded(self.string())
        else:
            name = self.take(BARE_REF, "an input or an attribute")
        after = self.at
        self.skip(_BLANK_OR_LINES)
        if not self.text.startswith("=", self.at):
            self.at = after
            if attrs and set(attrs) != {"dtype", "value"}:
                raise self.error("inputs come before attributes", start)
            inputs.append(name)
            return
        self.at += 1
        self.skip(_BLANK_OR_LINES)
        if name in attrs:
            raise self.error(f"attribute '{name}' is given twice", start)
        attrs[name] = self.value(name)

    def value(self, key: str = "") -> AttrValue:
        here = self.at
        character = self.text[here : here + 1]
        if character == '"':
            return self.string()
        if character == "[":
            return self.sequence(is_shape_key(key))
        if character == "$":
            self.at += 1
            return Parameter(self.name("a parameter name"))
        if self.text.startswith("<unknown>", here):
            self.at += len("<unknown>")
            return Shape(None)
        number = _NUMBER.match(self.text, here)
        if number:
            self.at = number.end()
            return self.number(number[0], here)
        word = self.take(_WORD, "a value")
        if word in ("true", "false"):
            return word == "true"
        follower = self.text[self.at : self.at + 1]
        if follower == "[" and word in ("shape", "list"):
            return self.sequence(word == "shape", strict=True)
        if follower == "[" and word == "bytes":
            raise self.error("the string is abbreviated; print the graph with all values (full=True)", here)
        readers: dict[str, Callable[[], AttrValue]] = {
            "tensor": self.tensor_value,
            "func": self.func_value,
            "opaque": self.opaque_value,
        }
        if follower == "(" and word in readers:
            self.at += 1
            return self.nested(readers[word])
        return self.dtype(word, here)

    def number(self, text: str, start: int) -> int | float:
        if re.fullmatch(r"[+-]?\d+", text):
            if len(text) > 20 or int(text) not in INT64:
                raise self.error("the integer does not fit into 64 bits", start)
            return int(text)
        with np.errstate(over="ignore"):
            return float(np.float32(text))

    def tensor_value(self) -> Tensor:
        self.skip(_BLANK_OR_LINES)
        tensor = self.tensor()
        self.skip(_BLANK_OR_LINES)
        self.expect(")")
        return tensor

    def opaque_value(self) -> Opaque:
        encoded = self.string()
        self.expect(")")
        return Opaque(encoded)

    def func_value(self) -> Func:
        name = self.name("a function name")
        attrs: dict[str, AttrValue] = {}
        while not self.closes(")", False):
            start, inputs = self.at, list[str]()
            self.argument(inputs, attrs)
            if inputs:
                raise self.error("a function takes attributes only", start)
        return Func(name, attrs)

    def sequence(self, as_shape: bool, strict: bool = False) -> AttrValue:
        """A list or a shape: the bracket is next. ``strict``: a shape, and nothing else, when ``as_shape``."""
        start = self.at
        self.expect("[")
        members: list[Any] = []
        while not self.closes("]", not members):
            if self.text.startswith("?", self.at):
                self.at += 1
                members.append(None)
            else:
                members.append(self.nested(self.list_member))
        integers = all(m is None or (isinstance(m, int) and not isinstance(m, bool)) for m in members)
        if None in members or (as_shape and integers):
            if not integers:
                raise self.error("a shape has integers and ? only", start)
            if any(m is not None and m < -1 for m in members):
                raise self.error("a shape has a dimension below -1", start)
            return Shape(members)
        if as_shape and strict:
            raise self.error("a shape has integers and ? only", start)
        if len({kind_of(m) for m in members}) > 1:
            raise self.error("the members of a list are all of one kind", start)
        return tuple(members)

    def list_member(self) -> AttrValue:
        return self.sequence(True, strict=True) if self.text.startswith("[", self.at) else self.value()

    def starts_tensor(self) -> bool:
        word = _WORD.match(self.text, self.at)
        if not word:
            return False
        after = _BLANK_OR_LINES.match(self.text, word.end())
        assert after is not None
        follower = self.text[after.end() : after.end() + 1]
        return follower == "[" or (after.end() > word.end() and follower not in (",", ")", "=", ""))

    def tensor(self) -> Tensor:
        start = self.at
        dtype = self.dtype(self.take(_WORD, "an element type"), start)
        if dtype.base.name in ("resource", "variant", "INVALID"):
            raise self.error(f"values of type {dtype.name} have no text form", start)
        sizes = _SIZES.match(self.text, self.at)
        declared: tuple[int, ...] | None = None
        if sizes:
            self.at = sizes.end()
            declared = self.sizes(sizes[1], start)
        self.skip(_BLANK_OR_LINES)
        if declared is not None and self.text[self.at : self.at + 1] in (",", ")", ""):
            raise self.error("the tensor is abbreviated; print the graph with all values (full=True)", start)
        flat: list[Any] = []
        shape = self.elements(dtype, flat, 0)
        if declared is not None and declared != shape:
            count = int(np.prod(declared, dtype=np.float64))
            if shape == () and count <= MOST_ELEMENTS:
                return self.made(
                    np.broadcast_to(self.array(flat * min(count, 1), dtype, start), (count,)), declared, dtype
                )
            if flat or count:
                raise self.error(f"the values have the shape {list(shape)}, not {list(declared)}", start)
            shape = declared
        return self.made(self.array(flat, dtype, start), shape, dtype)

    def sizes(self, text: str, start: int) -> tuple[int, ...]:
        parts = [part.strip() for part in text.split(",")] if text.strip() else []
        if any(not part.isdecimal() or len(part) > 12 for part in parts):
            raise self.error("a tensor's shape is a list of sizes, such as [3,3,64]", start)
        return tuple(int(part) for part in parts)

    def made(self, flat: np.ndarray[Any, Any], shape: tuple[int, ...], dtype: DType) -> Tensor:
        return Tensor.from_numpy(np.array(flat).reshape(shape), dtype)

    def elements(self, dtype: DType, flat: list[Any], depth: int) -> tuple[int, ...]:
        """Appends the elements of one nested list, or one element, to ``flat`` and gives its shape."""
        start = self.at
        if not self.text.startswith("[", self.at):
            flat.append(self.element(dtype))
            return ()
        if depth >= DEEPEST:
            raise self.error("the list is nested too deep", start)
        self.at += 1
        count, inner = 0, None
        while not self.closes("]", not count):
            shape = self.elements(dtype, flat, depth + 1)
            if inner is not None and shape != inner:
                raise self.error("the rows of a tensor have different sizes", start)
            count, inner = count + 1, shape
        return (count, *(inner or ()))

    def element(self, dtype: DType) -> Any:
        start = self.at
        if dtype.base is STRING:
            return self.string()
        word = self.take(_ELEMENT, f"a value of type {dtype.name}")
        if dtype.base is BOOL and word in ("true", "false"):
            return word == "true"
        try:
            if dtype.is_integer or dtype.is_quantized or dtype.base.name in ("int4", "uint4"):
                return int(word) if len(word) < 24 else int("too long")
            if dtype.base is not BOOL:
                return complex(word) if dtype.name.startswith("complex") else float(word)
        except ValueError:
            pass
        raise self.error(f"'{word}' is not a value of type {dtype.name}", start)

    def array(self, flat: list[Any], dtype: DType, start: int) -> np.ndarray[Any, Any]:
        kind = dtype.base.numpy
        if dtype.base is STRING:
            strings = np.empty(len(flat), dtype=object)
            strings[:] = flat
            return strings
        if flat and isinstance(flat[0], int) and dtype.base is not BOOL:
            low, high = _limits(dtype.base)
            if not all(low <= value <= high for value in flat):
                raise self.error(f"a value does not fit into {dtype.name} ({low} to {high})", start)
            return np.array(flat, dtype=np.uint64 if min(flat) >= 0 else np.int64).astype(kind)
        with np.errstate(over="ignore"):
            return np.array(flat).astype(kind)

    def dtype(self, word: str, start: int) -> DType:
        try:
            return DType.named(word)
        except GraphError:
            hint = did_you_mean(word, ("float", "int32", "int64", "string", "bool", "true", "false", "tensor", "func"))
            raise self.error(f"'{word}' is no value and no element type", start, hint) from None

    def name(self, what: str) -> str:
        return _decoded(self.string()) if self.text.startswith('"', self.at) else self.take(BARE_NAME, what)

    def string(self) -> bytes:
        found = _STRING.match(self.text, self.at)
        if not found:
            raise self.error("expected a string between double quotes, closed on the same line")
        start, self.at = self.at, found.end()
        raw = found[1].encode("utf-8", "surrogateescape")

        def character(escape: re.Match[bytes]) -> bytes:
            code = escape[1]
            if len(code) == 3:
                return bytes([int(code[1:], 16)])
            if code not in _ESCAPES:
                raise self.error(f"unknown escape \\{code.decode('utf-8', 'replace')} in a string", start)
            return _ESCAPES[code]

        return _ESCAPE.sub(character, raw)

    def closes(self, bracket: str, first: bool) -> bool:
        """Steps over the closing bracket, or over the comma before the next member."""
        self.skip(_BLANK_OR_LINES)
        if self.text.startswith(bracket, self.at):
            self.at += 1
            return True
        if not first:
            self.expect(",", f"expected ',' or '{bracket}'")
            self.skip(_BLANK_OR_LINES)
        return False

    def nested(self, read: Callable[[], AttrValue]) -> AttrValue:
        if self.depth >= DEEPEST:
            raise self.error("the value is nested too deep")
        self.depth += 1
        result = read()
        self.depth -= 1
        return result

    def skip(self, blank: re.Pattern[str]) -> None:
        found = blank.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def take(self, pattern: re.Pattern[str], what: str) -> str:
        found = pattern.match(self.text, self.at)
        if not found:
            raise self.error(f"expected {what}")
        self.at = found.end()
        return found[0]

    def expect(self, mark: str, message: str = "") -> None:
        if not self.text.startswith(mark, self.at):
            raise self.error(message or f"expected '{mark}'")
        self.at += len(mark)

    def error(self, what: str, at: int | None = None, hint: str = "") -> GraphError:
        place = self.at if at is None else at
        line = self.text.count("\n", 0, place) + 1
        column = place - (self.text.rfind("\n", 0, place) + 1) + 1
        rest = self.text[place : place + 24].split("\n")[0]
        found = f", found '{rest}'" if what.startswith("expected") else ""
        if what.startswith("expected") and not rest:
            found = ", found the end of the line" if place < len(self.text) else ", found the end of the text"
        return GraphError(what + found, where=f"line {line}, column {column}", hint=hint)


def _limits(dtype: DType) -> tuple[int, int]:
    bits = 4 if dtype.name in ("int4", "uint4") else 8 * dtype.size
    if "uint" in dtype.name:
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
