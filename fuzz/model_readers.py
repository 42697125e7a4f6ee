"""Targets: what reads models. Every attribute and every tensor of what they give is looked at."""

from __future__ import annotations

import contextlib
import functools
import pathlib
import sys
import tempfile
from collections.abc import Iterable

from fuzz.mutations import message_changed
from fuzz.targets import ROOT, files, stored, target
from pocketgraph import formats
from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting import required_ops
from pocketgraph.formats import content, graphdef, memmapped, meta_graph, onnx_file, saver_def, sealed, tflite
from pocketgraph.formats.detect import identify
from pocketgraph.formats.graphdef_text import print_message
from pocketgraph.formats.model_file_facts import facts
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import Func, Graph, Node, Tensor, opdefs
from pocketgraph.graph.order import topological
from pocketgraph.graph.text_format import parse, print_graph
from pocketgraph.kernels.shapes.infer import infer
from pocketgraph.litert.untrusted import verifier
from pocketgraph.protobuf.wire import bytes_field

sys.path.insert(0, str(ROOT / "tests"))

from graph_files import graph_file

FUNCTIONS = ROOT / "tests" / "runtime" / "functions"
LOOKED_AT = 1 << 20  # elements; what a small file makes of a larger tensor is only described
KEY = bytes(32)
GRAPH = """
x = Placeholder(dtype=float, shape=[1, 4])
w = Const(float[4, 2] 0.5)
words = Const(string ["a", "bc"])
half = Const(half [1, 2])
y = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
z = Relu(y, T=float)
"""
PROTO_WORDS = (
    b"Const", b"Placeholder", b"dtype", b"value", b"shape", b"T", b"PartitionedCall", b"f", b"_output_shapes", b"^x",
    b"x:0", b"\x42", b"\x2a", b"\x0a", b"\x12", b"\xff" * 9 + b"\x01", b"serve", b"serving_default",
)  # fmt: skip
FORMS = (
    "formats/graphdef.py formats/attr_value.py formats/tensor_proto.py formats/function_def.py formats/file_node.py "
    "protobuf/wire.py"
)
TEXT_WORDS = rb"""node { name: op: attr { key: value { tensor { tensor_shape dim { size: dtype: DT_FLOAT float_val:
tensor_content: library meta_graphs graph_def type: -1 " } < > # nan inf 1e999 0x \377""".split()
OUR_WORDS = rb"""x = Const( float float[ int32 [ string shape=[?,2] T=float ^x x:1 true nan -inf 1e999 "\xff" func {
} ( ) device= half 9999999999999999999""".split()


def visit(graph: Graph) -> None:
    """Looks at all that a graph holds."""
    for node in graph:
        visit_node(node)
    for function in graph.functions.values():
        for node in function.nodes:
            visit_node(node)


def visit_node(node: Node) -> None:
    _ = node.name, node.op, node.inputs, node.device
    for value in node.attrs.values():
        visit_value(value)


def visit_value(value: object) -> None:
    if isinstance(value, Tensor):
        if value.size <= LOOKED_AT:
            value.numpy()
    elif isinstance(value, tuple):
        for item in value:
            visit_value(item)
    elif isinstance(value, Func):
        for item in value.attrs.values():
            visit_value(item)


@functools.lru_cache(maxsize=1)
def written() -> dict[str, bytes]:
    """A small graph in each form that can be written, by the form's name."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        for form in ("graphdef", "text", "memmapped", "meta", "saved_model"):
            path = pathlib.Path(name) / form
            formats.save(parse(GRAPH), path, form=form)
            found[form] = (path / "saved_model.pb" if path.is_dir() else path).read_bytes()
    found["meta_text"] = print_message(found["meta"], "tensorflow.MetaGraphDef").encode()
    found["saved_model_text"] = print_message(found["saved_model"], "tensorflow.SavedModel").encode()
    return found


def of_kinds(kinds: Iterable[content.Kind], *patterns: str, most: int = 2048) -> list[bytes]:
    """The small files of these kinds."""
    return [data for data in files(*patterns, most=most, count=500) if content.of_content(data, "") in tuple(kinds)][
        :64
    ]


def graph_defs() -> list[bytes]:
    calls = [formats.to_bytes(graph_file(FUNCTIONS, name)) for name in ("branches", "by_name", "calls", "cases")]
    return [written()["graphdef"], *calls, *of_kinds([content.Kind.GRAPH_DEF], "*.pb")]


@target(FORMS, graph_defs, PROTO_WORDS, message_changed)
def read_graphdef(data: bytes) -> None:
    graph = graphdef.parse(data, "file")
    visit(graph)
    for _ in graphdef.chunks(graph):
        pass


@target("formats/graphdef_text.py formats/protos.py", lambda: [written()["text"], *files("*.pbtxt")], TEXT_WORDS)
def read_graphdef_text(data: bytes) -> None:
    visit(formats.load(stored(b"versions { producer: 27 }\n" + data, "model.pbtxt")))


@target(
    "graph/text_parser.py",
    lambda: [GRAPH.encode(), b"x = Const(" + b"[" * 1500, *map(printed, graph_defs())],
    OUR_WORDS,
)
def read_graph_text(data: bytes) -> None:
    visit(parse(data.decode("utf-8", "replace")))


def printed(data: bytes) -> bytes:
    return print_graph(graphdef.parse(data, ""), full=True).encode()


def meta_graphs() -> list[bytes]:
    return [written()["meta"], *of_kinds([content.Kind.META_GRAPH], "*.meta", most=4096)]


@target("formats/meta_graph.py", meta_graphs, PROTO_WORDS, message_changed)
def read_meta_graph(data: bytes) -> None:
    meta = meta_graph.parse(data, "file")
    visit(meta.graph)
    meta_graph.asset_files(meta)
    meta_graph.init_op(meta)


@target(
    "formats/saver_def.py",
    lambda: [bytes_field(3, b"save/restore_all"), *meta_graphs()],
    (*PROTO_WORDS, b'restore_op_name: "'),
    message_changed,
)
def read_saver_def(data: bytes) -> None:
    saver_def.restore_op(stored(data, "saver"))


def saved_models() -> list[bytes]:
    return [written()["saved_model"], *of_kinds([content.Kind.SAVED_MODEL_FILE], "saved_model.pb", most=4096)]


@target("formats/meta_graph.py formats/function_def.py formats/forms.py", saved_models, PROTO_WORDS, message_changed)
def read_saved_model(data: bytes) -> None:
    for meta in meta_graph.parse_saved_model(data, "file"):
        visit(meta.graph)
        for name in [*meta.graph.signatures][:4]:
            meta_graph.with_signature(meta.graph, name, "file")
        meta_graph.asset_files(meta)
        meta_graph.init_op(meta)


@target("formats/graphdef_text.py", lambda: [written()["saved_model_text"], written()["meta_text"]], TEXT_WORDS)
def read_model_text(data: bytes) -> None:
    visit(formats.load(stored(data, "model.pbtxt")))


@target("formats/memmapped.py", lambda: [written()["memmapped"], *files("packages/*")], PROTO_WORDS, longest=4096)
def read_memmapped(data: bytes) -> None:
    visit(formats.load(stored(data, "package")))


def directory_changed(data: bytes, most: int, rng: object, mutate: object) -> bytes:
    """The directory at the end of a package changed."""
    start = int.from_bytes(data[-8:], "little")
    if not 0 < start <= len(data) - 8:
        return mutate(data, most)  # type: ignore[operator]
    return data[:start] + message_changed(data[start:-8], most, rng, mutate) + data[-8:]  # type: ignore[arg-type]


@target("formats/memmapped.py", lambda: [written()["memmapped"]], PROTO_WORDS, directory_changed)
def read_memmapped_directory(data: bytes) -> None:
    visit(memmapped.read(data, "package"))


def sealed_files() -> list[bytes]:
    return [b"".join(sealed.sealed_chunks(written()["graphdef"], KEY)), b"".join(sealed.sealed_chunks(b"", KEY))]


@target("formats/sealed.py", sealed_files)
def read_sealed(data: bytes) -> None:
    sealed.opened(data, KEY, "file")


@target("formats/sealed.py", lambda: [KEY, KEY.hex().encode(), b"ab" * 32 + b"\n"])
def read_sealing_key(data: bytes) -> None:
    sealed.key_bytes(pathlib.Path(stored(data, "key")))


@target(
    "formats/content.py formats/detect.py formats/model_file_facts.py",
    lambda: [*written().values(), *litert_files()[:8], *files("*.index", "*.ckpt", "checkpoint", most=2048)],
    (*PROTO_WORDS, b"TFL3", b"node {", b"<html", b"version https://git-lfs", b"\x89HDF", b"PK\x03\x04"),
)  # fmt: skip
def read_any_file(data: bytes) -> None:
    path = stored(data, "any")
    identify(path)
    facts(path)


@functools.lru_cache(maxsize=1)
def litert_files() -> list[bytes]:
    """Small LiteRT files, those that the lowerings make of small graphs among them."""
    import pocketgraph
    from pocketgraph.exporting import About

    made = files("*.tflite", "*.bytes", most=4096)
    graphs = (
        GRAPH,
        "x = Placeholder(dtype=float, shape=[1, 4, 4, 2])\nw = Const(float[3, 3, 2, 2] 0.5)\n"
        'y = Conv2D(x, w, T=float, strides=[1, 1, 1, 1], padding="SAME")\nz = Relu(y, T=float)',
    )
    with tempfile.TemporaryDirectory() as name:
        for number, text in enumerate(graphs):
            path = f"{name}/{number}.tflite"
            pocketgraph.export(parse(text, outputs=["z"]), path)
            made.append(pathlib.Path(path).read_bytes())
        pocketgraph.export(parse(GRAPH, outputs=["z"]), path, labels=("cat", "dog"), about=About("a", "b", "c"))
        made.append(pathlib.Path(path).read_bytes())
    return [data for data in made if len(data) <= 8192]


@target("formats/tflite.py formats/flatbuffers.py", litert_files, longest=4096)
def read_tflite(data: bytes) -> None:
    tflite.facts(data, "file")
    visit(tflite.parse(data, "file"))
    required_ops.litert_registration(required_ops.litert_operators({"file": data}))


@target("litert/untrusted/verifier.py formats/flatbuffers.py", litert_files, longest=4096)
def read_tflite_verifier(data: bytes) -> None:
    if not verifier.fault(data):
        tflite.facts(data, "file")


METADATA_WORDS = (b"M001", b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"TFLITE_METADATA")


@target("formats/tflite_metadata.py formats/flatbuffers.py", litert_files, METADATA_WORDS, longest=4096)
def read_tflite_metadata(data: bytes) -> None:
    metadata(data, "file")


@functools.lru_cache(maxsize=1)
def onnx_files() -> list[bytes]:
    """An ONNX file of the small graph, where the extra is installed, and those that are here."""
    import pocketgraph

    made = files("*.onnx")
    with tempfile.TemporaryDirectory() as name:
        path = f"{name}/model.onnx"
        try:
            pocketgraph.export(parse(GRAPH, outputs=["z"]), path)
        except PocketgraphError:
            return made
        return [*made, pathlib.Path(path).read_bytes()]


@target("formats/onnx_file.py", onnx_files, (b"MatMul", b"", b"ai.onnx"), message_changed)
def read_onnx(data: bytes) -> None:
    visit(onnx_file.parse(data, "file"))
    required_ops.onnx_config(required_ops.onnx_operators({"file": data}))


@target("graph/order.py graph/opdefs.py kernels/shapes/infer.py", graph_defs, PROTO_WORDS, message_changed)
def read_graph_checks(data: bytes) -> None:
    """What every command asks of a graph that it was given: names, order, inputs, outputs and shapes."""
    graph = graphdef.parse(data, "file")
    visit(graph)
    topological(graph)
    for node in graph:
        with contextlib.suppress(PocketgraphError):
            opdefs.output_dtypes(node)
    infer(graph)
