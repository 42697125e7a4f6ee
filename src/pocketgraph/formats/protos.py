"""Message classes of the protobuf library for TensorFlow's files, made at run time from ``protos.txt``.

They live in a descriptor pool of their own, so that TensorFlow may be imported in the same process. Only text forms and
small side files need them; GraphDefs are walked without the library (see wire.py).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from pocketgraph.package_data import text_beside

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import Message

FIELD = re.compile(r" +(-?\d+) (\w+) (repeated )?(?:map<(\w+), ([\w.]+)>|([\w.]+))(?: oneof (\w+))?")
VALUE = re.compile(r" +(\d+|-\d+) (\w+)")

SCALARS = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8, "string": 9,
    "bytes": 12, "uint32": 13, "sint64": 18,
}  # fmt: skip
"""FieldDescriptorProto.Type by the names that .proto files use."""
MESSAGE, ENUM, OPTIONAL, REPEATED = 11, 14, 1, 3


@cache
def message(name: str) -> type[Message]:
    """The class of a message, as in ``message("tensorflow.GraphDef")``.

    Raises:
        KeyError: ``protos.txt`` does not have it.
    """
    from google.protobuf import message_factory

    found: type[Message] = message_factory.GetMessageClass(pool().FindMessageTypeByName(name))
    return found


@cache
def pool() -> DescriptorPool:
    """The descriptors of everything in ``protos.txt``."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    messages, enums = read_table(text_beside(__file__, "protos.txt"))
    common = FileDescriptorProto(name="pocketgraph/google.proto", package="google.protobuf", syntax="proto3")
    ours = FileDescriptorProto(name="pocketgraph/tensorflow.proto", package="tensorflow", syntax="proto3")
    ours.dependency.append(common.name)
    places: dict[str, DescriptorProto] = {}
    for name, lines in messages.items():
        short = name.removeprefix("google.protobuf.")
        places[name] = place(short, common if short != name else ours, places)
        for line in lines:
            add_field(places[name], line, name, set(enums))
    for name, lines in enums.items():
        outer, _, short = name.rpartition(".")
        enum = (places[outer] if outer else ours).enum_type.add(name=short)
        for line in lines:
            number, value = matched(VALUE, line).groups()
            enum.value.add(name=value, number=int(number))
    made = DescriptorPool()
    made.AddSerializedFile(common.SerializeToString())
    made.AddSerializedFile(ours.SerializeToString())
    return made


def read_table(text: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The lines of ``protos.txt`` by message and by enum."""
    tables: dict[str, dict[str, list[str]]] = {"message": {}, "enum": {}}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            lines.append(line)
        elif line and not line.startswith("#"):
            kind, name = line.split()
            lines = tables[kind].setdefault(name, [])
    return tables["message"], tables["enum"]


def place(name: str, file: FileDescriptorProto, places: dict[str, DescriptorProto]) -> DescriptorProto:
    """A new message where its dotted name says: in the file, or in a message that is there already."""
    outer, _, short = name.rpartition(".")
    return places[outer].nested_type.add(name=short) if outer else file.message_type.add(name=short)


def add_field(owner: DescriptorProto, line: str, owner_name: str, enums: set[str]) -> None:
    """Adds the field that a line of protos.txt describes; a map gets the entry message that protobuf wants."""
    number, name, repeated, key, value, plain, oneof = matched(FIELD, line).groups()
    field = owner.field.add(name=name, number=int(number))
    field.label = REPEATED if repeated or key else OPTIONAL  # type: ignore[assignment]
    if key:
        entry = owner.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
        entry.options.map_entry = True
        for entry_number, (entry_name, kind) in enumerate((("key", key), ("value", value)), 1):
            set_type(entry.field.add(name=entry_name, number=entry_number, label=OPTIONAL), kind, enums)
        set_type(field, f"{owner_name}.{entry.name}", enums)
    else:
        set_type(field, plain, enums)
    if oneof:
        names = [choice.name for choice in owner.oneof_decl]
        if oneof not in names:
            owner.oneof_decl.add(name=oneof)
            names.append(oneof)
        field.oneof_index = names.index(oneof)


def set_type(field: FieldDescriptorProto, kind: str, enums: set[str]) -> None:
    """Gives a field its scalar type, or the message or enum of this name."""
    if kind in SCALARS:
        field.type = SCALARS[kind]  # type: ignore[assignment]
        return
    field.type = ENUM if kind in enums else MESSAGE  # type: ignore[assignment]
    field.type_name = f".{kind}" if kind.startswith("google.protobuf.") else f".tensorflow.{kind}"


def matched(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    """The match of a whole line of protos.txt, which is our own file: a line that does not match is a mistake in
    it.
    """
    match: Any = pattern.fullmatch(line)
    assert match, f"protos.txt has the line {line!r}"
    return match  # type: ignore[no-any-return]
