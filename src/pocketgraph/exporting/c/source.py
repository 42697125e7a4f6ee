"""The C text of a library: model.h and model.c."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from pocketgraph.exporting.arena import ALIGNMENT, Buffer, Layout
from pocketgraph.exporting.c.unit import C_TYPES, Argument, CConstant, KernelCall, Pointer, Unit, number
from pocketgraph.exporting.c_identifiers import comment, identifiers, literal
from pocketgraph.exporting.templates import filled
from pocketgraph.litert.program import Value
from pocketgraph.package_data import text_beside

INCLUDE = re.compile(r'^#include "(\w+\.h)"\n', re.MULTILINE)
SYSTEM = re.compile(r"^#include <(math|stddef|stdint|string)\.h>\n", re.MULTILINE)
REPEATED = "_body.h"
"""How files end that are taken in each time they are mentioned; others only the first time."""

SETUP = """    memset(m->operators, 0, sizeof m->operators);
    if (xnn_initialize(0) != xnn_status_success) return @NAME@_NO_OPERATOR;
    if (!(@calls@)) {
        @name@_release(m);
        return @NAME@_NO_OPERATOR;
    }
"""
RELEASE = """    for (int i = 0; i < @count@; i++)
        if (m->operators[i]) (void)xnn_delete_operator((xnn_operator_t)m->operators[i]);
    memset(m->operators, 0, sizeof m->operators);
"""


class CTensor(NamedTuple):
    """An input or output of the library: its public name, and the value that it is."""

    name: str
    value: Value


@lru_cache
def kernel_text(name: str) -> str:
    """A file of kernels, or a template of another file."""
    return text_beside(__file__, f"kernels/{name}")


@lru_cache
def template(name: str) -> str:
    """A file that goes with every library."""
    return text_beside(__file__, f"files/{name}")


def filled_in(text: str, name: str, **parts: str) -> str:
    """A template with the library's name, and other parts, in their places."""
    return filled(filled(text, parts), {"name": name, "NAME": name.upper()})


def kernels(names: Sequence[str]) -> str:
    """The kernel files with all that they stand on, each once, as one text."""
    taken: set[str] = set()

    def expand(name: str) -> str:
        if name in taken and not name.endswith(REPEATED):
            return ""
        taken.add(name)
        return INCLUDE.sub(lambda found: expand(found[1]) + "\n", kernel_text(name))

    text = "".join(expand(name) for name in names)
    return re.sub(r"\n{3,}", "\n\n", SYSTEM.sub("", text))


@dataclass(frozen=True)
class Source:
    """What model.h and model.c are made of.

    Attributes:
        name: of the library.
        unit: what its operations became.
        inputs: what goes in.
        outputs: what comes out.
        offsets: where each buffer of the arena begins.
        layout: the arena.
    """

    name: str
    unit: Unit
    inputs: Sequence[CTensor]
    outputs: Sequence[CTensor]
    offsets: Mapping[Buffer, int]
    layout: Layout

    def header(self, weights: int, access: str) -> str:
        """model.h, for so many bytes of weights that are found by ``access``."""
        accessors = []
        for kind, tensors, const in (("input", self.inputs, ""), ("output", self.outputs, "const ")):
            names = identifiers([tensor.name for tensor in tensors])
            for place, (tensor, short) in enumerate(zip(tensors, names, strict=True)):
                value = tensor.value
                shape = ", ".join(map(str, value.shape))
                text = f"{const}{C_TYPES[value.dtype.name]}"
                accessors.append(
                    f"{comment(f'{tensor.name}: {value.dtype.name} [{shape}]')}\n"
                    f"static inline {text} *{self.name}_{kind}_{short}(const {self.name} *m) {{\n"
                    f"    return ({text} *){self.name}_{kind}(m, {place});\n}}\n"
                )
        return filled_in(
            template("model.h"), self.name, arena=str(max(self.layout.size, ALIGNMENT)), alignment=str(ALIGNMENT),
            weights=str(weights), inputs=str(len(self.inputs)), outputs=str(len(self.outputs)),
            accessors="\n".join(accessors), weights_access=access,
            operators=f"    void *operators[{len(self.unit.setups)}];\n" if self.unit.setups else "",
        )  # fmt: skip

    def code(self, weights: bytes) -> str:
        """model.c, for these weights."""
        unit, name = self.unit, self.name
        used = kernels(list(dict.fromkeys(["support.h", *unit.kernels])))
        parts = [
            *(f"{definition}\n" for definition in unit.definitions),
            *(f"static const {kind} {table} = {content};\n" for (kind, content), table in unit.tables.items()),
        ]
        return filled_in(
            template("model.c"), name, kernels=used.strip(), parts="".join(parts),
            inputs=_tensors(f"{name}_inputs", name, self.inputs),
            outputs=_tensors(f"{name}_outputs", name, self.outputs), input_places=self._places(self.inputs),
            output_places=self._places(self.outputs), digest=", ".join(str(byte) for byte in weights[:16]),
            level="pg_level()" if "pg_level" in used else "0",
            setup=self._setup(), calls=self._lines(unit.calls),
            release=RELEASE.replace("@count@", str(len(unit.setups))) if unit.setups else "    (void)m;\n",
        )  # fmt: skip

    def _setup(self) -> str:
        """What ``init`` makes, and gives up where it cannot be made."""
        if not self.unit.setups:
            return ""
        calls = [f"{call.function}({', '.join(map(self._argument, call.arguments))})" for call in self.unit.setups]
        text = " &&\n        ".join(calls)
        return SETUP.replace("@calls@", text)

    def _lines(self, calls: Sequence[KernelCall]) -> str:
        lines, depth = [], 0
        for call in calls:
            depth -= call.is_text and call.function.startswith("}")
            lines.append("    " * depth + self._line(call))
            depth += call.is_text and call.function.endswith("{")
        return "".join(lines)

    def _line(self, call: KernelCall) -> str:
        arguments = tuple(map(self._argument, call.arguments))
        text = f"    {call.function % arguments}" if call.is_text else f"    {call.function}({', '.join(arguments)});"
        return f"{text} {comment(call.nodes[-1])}\n" if call.nodes else f"{text}\n"

    def _argument(self, item: Argument) -> str:
        if isinstance(item, Pointer):
            return f"A({self.offsets[item.buffer] + item.offset})"
        if isinstance(item, CConstant):
            return f"W({item.offset})"
        return item if isinstance(item, str) else number(item)

    def _places(self, tensors: Sequence[CTensor]) -> str:
        lines = []
        for place, tensor in enumerate(tensors):
            at = self._argument(self.unit.at(tensor.value)) if tensor.value.size else "A(0)"
            lines.append(f"    if (index == {place}) return {at};\n")
        return "".join(lines)


def _tensors(table: str, name: str, tensors: Sequence[CTensor]) -> str:
    """The descriptions of inputs or outputs."""
    lines = []
    shapes = []
    for place, tensor in enumerate(tensors):
        value = tensor.value
        scale, zero = 0.0, 0
        if value.quantization is not None:
            scale, zero = value.quantization.scales[0], value.quantization.zero_points[0]
        shape = f"{table}_shape_{place}"
        shapes.append(f"static const int32_t {shape}[] = {{{', '.join(map(str, value.shape or (1,)))}}};\n")
        kind = f"{name.upper()}_{value.dtype.name.upper()}"
        size = value.size * value.dtype.size
        lines.append(
            f"    {{{literal(tensor.name)}, {kind}, {len(value.shape)}, {shape}, {size}, {number(scale)}, {zero}}},\n"
        )
    empty = "" if tensors else "    {0, 0, 0, 0, 0, 0, 0},\n"
    return f"{''.join(shapes)}const {name}_tensor {table}[] = {{\n{''.join(lines)}{empty}}};\n"
