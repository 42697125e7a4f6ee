"""The text form of a GraphDef (.pbtxt) and of other messages, read and written by the protobuf library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pocketgraph.errors import FormatError
from pocketgraph.formats import graphdef
from pocketgraph.formats.protos import message
from pocketgraph.graph import Graph
from pocketgraph.protobuf.wire import Buffer

if TYPE_CHECKING:
    from google.protobuf.message import Message

LARGEST = (1 << 31) - 1  # bytes of a message that the protobuf library reads


def parse(buffer: Buffer, file: str) -> Graph:
    """The graph that a text GraphDef describes.

    Raises:
        FormatError: the text is not one; the message says in which line that shows.
    """
    return graphdef.parse(binary_of(buffer, "tensorflow.GraphDef", file), file)


def binary_of(buffer: Buffer, name: str, file: str) -> bytes:
    """The encoding of a message of this name that is given as text; errors as for ``parse``."""
    return parse_message(buffer, name, file).SerializeToString(deterministic=True)


def parse_message(buffer: Buffer, name: str, file: str) -> Message:
    """The message of this name that is given as text; errors as for ``parse``."""
    from google.protobuf import text_format

    made = message(name)()
    try:
        text_format.Parse(buffer[:].decode("utf-8-sig"), made)
    except UnicodeDecodeError as error:
        raise FormatError(f"the text is not valid UTF-8 at byte {error.start:,}", where=file) from None
    except text_format.ParseError as error:
        line = error.GetLine()
        what = str(error).split(" : ", 1)[-1].replace("\n", " ")[:300]
        raise FormatError(f"line {line}: {what}" if line else what, where=file) from None
    except (RecursionError, ValueError, OverflowError) as error:
        raise FormatError(f"the text cannot be read as a {name}: {str(error)[:200]}", where=file) from None
    return made


def print_graph_def(graph: Graph) -> str:
    """The text form of a graph.

    Raises:
        FormatError: the graph holds fields that text cannot carry, or is larger than the protobuf library takes.
    """
    return print_message(b"".join(graphdef.chunks(graph)), "tensorflow.GraphDef")


def print_message(encoded: bytes, name: str) -> str:
    """The text form of a message; errors as for ``print_graph_def``."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    if len(encoded) > LARGEST:
        what = f"the text form cannot be written: the protobuf library takes 2 GB, and this has {len(encoded):,} bytes"
        raise FormatError(what, hint="write the binary form")
    try:
        made = message(name).FromString(encoded)
    except DecodeError as error:
        raise FormatError(f"the text form cannot be written: {error}", hint="write the binary form") from None
    size = made.ByteSize()
    made.DiscardUnknownFields()
    if made.ByteSize() != size:
        raise FormatError(
            "the graph holds fields of a newer TensorFlow, which the text form would lose", hint="write the binary form"
        )
    return text_format.MessageToString(made)
