"""Says what a file is by its bytes: how it begins, how it ends, or which protobuf message it can only be."""

from __future__ import annotations

import re
import struct
from enum import Enum

from pocketgraph.errors import AGAIN
from pocketgraph.protobuf import wire
from pocketgraph.protobuf.wire import LEN, VARINT, Buffer, WireError

WITH_GRAPH = "freeze_graph takes it as input_checkpoint={}, with the graph that it was made of as input_graph"
WITH_KERAS = (
    "in Python with Keras: keras.models.load_model('{}').export('saved_model'); where TensorFlow before 2.16 wrote it, "
    "after pip install tf_keras with tf_keras in place of keras"
)
OR_OF_OLD_KERAS = (
    ", before Keras 2.13 tf.saved_model.save(model, 'saved_model'), with TensorFlow 1 tf.saved_model.simple_save"
)


class Kind(Enum):
    """What can lie on a disk: a description, and what to type next, ``{}`` standing for the path."""

    GRAPH_DEF = ("a GraphDef", "pocketgraph summarize_graph --in_graph={}")
    GRAPH_DEF_TEXT = ("a GraphDef in text form", "pocketgraph summarize_graph --in_graph={}")
    META_GRAPH = ("a MetaGraphDef", "pocketgraph summarize_graph --in_graph={}")
    META_GRAPH_TEXT = ("a MetaGraphDef in text form", "pocketgraph summarize_graph --in_graph={}")
    SAVED_MODEL = ("a SavedModel", "pocketgraph freeze_graph --input_saved_model_dir={} -o frozen.pb")
    SAVED_MODEL_FILE = ("the graph file of a SavedModel", "give its directory, {folder}")
    SAVED_MODEL_TEXT = ("the graph file of a SavedModel in text form", "give its directory, {folder}")
    CHECKPOINT_V2 = ("a checkpoint (variables only, no graph)", WITH_GRAPH)
    CHECKPOINT_INDEX = ("the index of a checkpoint (variables only, no graph)", WITH_GRAPH)
    CHECKPOINT_DATA = ("a data file of a checkpoint (variables only, no graph)", WITH_GRAPH)
    CHECKPOINT_V1 = ("a checkpoint of the old format V1 (variables only, no graph)", WITH_GRAPH)
    CHECKPOINT_STATE = ("the text file that names a directory's checkpoints", WITH_GRAPH)
    CHECKPOINT_DIRECTORY = ("a training directory with checkpoints", "pocketgraph freeze_graph {} -o frozen.pb")
    MEMMAPPED = ("a memory-mapped package", "pocketgraph summarize {}")
    SEALED = ("a sealed (encrypted) file", "unseal takes it, {}, with its key as key-file")
    TFLITE = ("a LiteRT (TensorFlow Lite) model", "pocketgraph benchmark_model --graph={}")
    ONNX = ("an ONNX model", "pocketgraph benchmark_model --graph={}")
    MEDIAPIPE = ("a graph of MediaPipe's calculators", "give the .tflite file that it runs")
    CORE_ML = ("a Core ML package", "open it in Xcode; pocketgraph writes such packages and does not read them")
    HDF5 = ("an HDF5 file, as Keras saves models in", "pocketgraph summarize_graph --in_graph={}")
    HDF5_WEIGHTS = (
        "an HDF5 file of a Keras model's weights, without the model",
        "in Python with Keras, on the model of your code: model.load_weights('{}'); model.export('saved_model')"
        + OR_OF_OLD_KERAS,
    )
    KERAS_JSON = (
        "the layers of a Keras model in JSON, with its weights beside it",
        "pocketgraph summarize_graph --in_graph={}",
    )
    KERAS_YAML = (
        "the layers of a Keras model in YAML",
        'it is read in JSON, with its weights beside it: python -c "import json, sys, yaml; '
        "json.dump(yaml.full_load(open(sys.argv[1])), open('model.json', 'w'))\" {}",
    )
    KERAS = ("a Keras model archive", "pocketgraph summarize_graph --in_graph={}")
    IMAGE = ("an image", "label_image takes it, {}, with a graph")
    SOUND = ("a sound file", "give the model file instead")
    EVENTS = ("an event file of TensorBoard", "give the model file instead")
    TF_RECORDS = ("a TFRecord file of training data", "give the model file instead")
    NUMPY = ("a file of NumPy arrays", "give the model file instead")
    PICKLE = ("a Python pickle, as PyTorch saves models in", "give a TensorFlow model file")
    ARCHIVE = ("a compressed archive", "unpack it and give the model file inside")
    LFS_POINTER = ("a Git LFS pointer, not the file itself", "git lfs pull")
    HTML = ("a web page, not a model (a download that went wrong?)", "download the file again")
    TENSORFLOW_JS = ("a graph model of TensorFlow.js", "pocketgraph summarize_graph --in_graph={}")
    TENSORFLOW_JS_LAYERS = ("a TensorFlow.js model of Keras layers", "pocketgraph summarize_graph --in_graph={}")
    TENSORFLOW_JS_WEIGHTS = (
        "a list of weights for TensorFlow.js, without a graph",
        "the graph is in the program that loads them: build it there as a tf.model, whose save() writes a model.json",
    )
    KERAS_METADATA = (
        "what Keras tells of a SavedModel's layers, without the model",
        "give the directory of the whole SavedModel, which has saved_model.pb and variables/, too",
    )
    JSON = ("a JSON file", "give the model file instead")
    TEXT = ("a text file that describes no model", "give the model file instead")
    EMPTY = ("an empty file", AGAIN)
    C_LIBRARY = ("a library in C that pocketgraph exported", "make -C {} check")
    DIRECTORY = ("a directory without a model that pocketgraph knows", "give the model file inside")
    MISSING = ("not there", "")
    UNKNOWN = ("a file of no kind that pocketgraph knows", "give a GraphDef (.pb or .pbtxt), a .meta or a SavedModel")


def of_content(buffer: Buffer, path: str = "") -> Kind:
    """What a file with this content is; the path only tells apart what the content cannot (a checkpoint's raw data)."""
    if not len(buffer):
        return Kind.EMPTY
    head = buffer[:4096]
    found = of_tail(buffer) or of_magic(head)
    if found is Kind.HDF5 and (path.endswith(KERAS_WEIGHTS) or (b"layer_names" in head and OF_MODEL not in head)):
        return Kind.HDF5_WEIGHTS
    if (
        found is Kind.ARCHIVE
        and head.startswith(b"PK")
        and (path.endswith(".keras") or holds_member(buffer[-4096:], KERAS_MEMBER))
    ):
        return Kind.KERAS  # packed by another program, in another order
    if found:
        return found
    if ".data-" in path and re.search(r"\.data-\d+-of-\d+$", path):
        return Kind.CHECKPOINT_DATA
    if head[:1] == b"\n" and KERAS_OBJECT in head and re.match(OF_KERAS_METADATA, head[2:], re.DOTALL):
        return Kind.KERAS_METADATA
    return of_text(head) or of_records(buffer) or of_message(buffer) or Kind.UNKNOWN


KERAS_WEIGHTS = ".weights.h5"
"""How the files of ``save_weights`` must end in Keras 3."""
KERAS_MEMBER = b"model.weights.h5"
"""The file in an archive of Keras 3 that has the weights."""
OF_MODEL = b"model_config"
"""The attribute that a whole model has, and a file of weights, which begins with the names of its layers, has not."""
KERAS_OBJECT = b"_tf_keras_"
OF_KERAS_METADATA = rb".?(\x10.)?\x1a\x04root\x22.?" + KERAS_OBJECT
"""The number, the path and the kind of the first object that keras_metadata.pb describes."""
SEAL = b"PGSEAL\x01\n"  # see sealed.py
MAGICS: tuple[tuple[bytes, Kind], ...] = (
    (b"\x89HDF\r\n\x1a\n", Kind.HDF5), (b"\x89PNG\r\n\x1a\n", Kind.IMAGE), (b"\xff\xd8\xff", Kind.IMAGE),
    (b"GIF87a", Kind.IMAGE), (b"GIF89a", Kind.IMAGE), (b"\x93NUMPY", Kind.NUMPY), (b"PK\x03\x04", Kind.ARCHIVE),
    (b"\x1f\x8b", Kind.ARCHIVE), (b"BZh", Kind.ARCHIVE), (b"\xfd7zXZ\x00", Kind.ARCHIVE),
    (SEAL, Kind.SEALED),
    (b"\x28\xb5\x2f\xfd", Kind.ARCHIVE), (b"7z\xbc\xaf\x27\x1c", Kind.ARCHIVE),
    (b"\x80\x02", Kind.PICKLE),
    (b"\x80\x03", Kind.PICKLE), (b"\x80\x04", Kind.PICKLE), (b"\x80\x05", Kind.PICKLE),
)  # fmt: skip
"""How files of other kinds begin."""


def of_magic(head: bytes) -> Kind | None:
    """What the first bytes alone tell."""
    if head[4:8] == b"TFL3":
        return Kind.TFLITE
    if head[:4] == b"RIFF" and head[8:12] in (b"WAVE", b"WEBP"):
        return Kind.SOUND if head[8:12] == b"WAVE" else Kind.IMAGE
    if head[:2] == b"BM" and head[6:10] == b"\0\0\0\0":
        return Kind.IMAGE
    if head[257:262] == b"ustar":
        return Kind.ARCHIVE
    found = next((kind for magic, kind in MAGICS if head.startswith(magic)), None)
    if found is Kind.ARCHIVE and head.startswith(b"PK"):
        if holds_member(head[:200], b"metadata.json") or holds_member(head, KERAS_MEMBER):
            return Kind.KERAS
        if head[30:].split(b"\0")[0].partition(b".npy")[1]:
            return Kind.NUMPY
        if b"/data.pkl" in head[:300]:
            return Kind.PICKLE
    return found


def holds_member(part: bytes, name: bytes) -> bool:
    """Whether a part of a zip file has the header of a member of this whole name, or its entry in the directory."""
    size = re.escape(struct.pack("<H", len(name)))
    headers = rb"PK(?:\x03\x04.{22}" + size + rb"..|\x01\x02.{24}" + size + rb".{16})"
    return re.search(headers + re.escape(name), part, re.DOTALL) is not None


TABLE_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)  # the end of every sstable
TABLE_FOOTER = 48
PACKAGE = b"memmapped_package://"


def of_tail(buffer: Buffer) -> Kind | None:
    """What a file's last bytes tell: checkpoints and memory-mapped packages keep their directories there."""
    size = len(buffer)
    if buffer[max(size - 8, 0) :] == TABLE_MAGIC and size >= TABLE_FOOTER:
        # The first entry has the empty key; it holds a BundleHeaderProto, which begins with a number, or in the old
        # format a SavedTensorSlices, which begins with a message.
        try:
            _, position = wire.read_varint(buffer, 2, size)
        except WireError:
            return Kind.CHECKPOINT_INDEX
        return Kind.CHECKPOINT_V1 if buffer[position] == 0x0A else Kind.CHECKPOINT_INDEX
    if size > 16:
        (offset,) = struct.unpack("<Q", buffer[size - 8 :])
        if offset < size - 8 and PACKAGE in buffer[offset : min(offset + 4096, size - 8)]:
            return Kind.MEMMAPPED
    return None


FIRST_WORDS: tuple[tuple[tuple[bytes, ...], Kind], ...] = (
    ((b"node", b"library", b"versions", b"version", b"debug_info"), Kind.GRAPH_DEF_TEXT),
    (
        (b"meta_info_def", b"graph_def", b"saver_def", b"collection_def", b"signature_def", b"asset_file_def"),
        Kind.META_GRAPH_TEXT,
    ),
    ((b"saved_model_schema_version", b"meta_graphs"), Kind.SAVED_MODEL_TEXT),
    ((b"all_model_checkpoint_paths", b"model_checkpoint_path"), Kind.CHECKPOINT_STATE),
)
OF_TENSORFLOW_JS = (b'"modelTopology"', b'"weightsManifest"', b'"graph-model"', b'"layers-model"')
OF_LAYERS = (b'"layers-model"', b'"keras_version"', b'"model_config"', b'"class_name"')
OF_ARCHITECTURE = rb'\s*"?\{\s*\\?"(module|class_name|config|keras_version|backend)\\?":[^\0]*"?class_name'
"""How the description of a model begins that ``Model.to_json`` tells, also where it was written as JSON once more."""
OF_YAML = rb"(backend|class_name|config):.*\n(.*\n)*? *- ?class_name: "
"""How ``Model.to_yaml`` of Keras 1 and 2 tells it."""
CONTROL = bytes([*range(9), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])


def _begins_with(head: bytes, words: tuple[bytes, ...]) -> bool:
    """Whether the first thing in a text, after blanks and comments, is one of these words as the name of a field."""
    if not any(word in head for word in words):
        return False  # a pattern takes as long to compile as reading a small file
    return re.match(rb"(\s|#.*\n)*(" + b"|".join(words) + rb")\s*[:{<]", head) is not None


def of_text(head: bytes) -> Kind | None:
    """What a text is by its first word; None for what is not text."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    if head.startswith(b"version https://git-lfs"):
        return Kind.LFS_POINTER
    for words, kind in FIRST_WORDS:
        if _begins_with(head, words):
            return kind
    if len(head.translate(None, CONTROL)) < len(head):
        return None
    try:
        head[: len(head) - 4 if len(head) == 4096 else None].decode()
    except UnicodeDecodeError:
        return None
    start = head.lstrip()[:15].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return Kind.HTML
    if re.match(OF_ARCHITECTURE, head) and not any(word in head for word in OF_TENSORFLOW_JS):
        return Kind.KERAS_JSON
    if re.match(OF_YAML, head):
        return Kind.KERAS_YAML
    if not start.startswith((b"{", b"[")):
        return Kind.TEXT
    if not any(word in head for word in OF_TENSORFLOW_JS):
        is_manifest = start.startswith(b"[") and all(word in head for word in (b'"weights"', b'"shape"', b'"dtype"'))
        return Kind.TENSORFLOW_JS_WEIGHTS if is_manifest else Kind.JSON
    return Kind.TENSORFLOW_JS_LAYERS if any(word in head for word in OF_LAYERS) else Kind.TENSORFLOW_JS


def of_records(buffer: Buffer) -> Kind | None:
    """Whether a file begins with a TFRecord: an eight-byte length and the checksum of the length."""
    from pocketgraph.formats.crc32c import checksum, masked

    if len(buffer) < 16:
        return None
    (length,) = struct.unpack("<Q", buffer[:8])
    if length > len(buffer) - 16 or masked(checksum(buffer[:8])) != struct.unpack("<I", buffer[8:12])[0]:
        return None
    return Kind.EVENTS if b"brain.Event:" in buffer[12 : 12 + min(length, 256)] else Kind.TF_RECORDS


OP = rb"[A-Za-z_.][\w.>/\-]*"
LONGEST_OP = 300
LAST_NODE_FIELD = 7
MOST_FIELDS = 64  # of a file, looked at to tell what it is


def of_message(buffer: Buffer) -> Kind | None:
    """Which protobuf message a file holds, going by its first fields; a file that is cut short still shows them."""
    found: list[tuple[int, int, int, int]] = []
    try:
        for _, number, kind, value, stop in wire.fields(buffer, 0, len(buffer)):
            found.append((number, kind, value, stop))
            if len(found) == MOST_FIELDS:
                break
    except WireError as error:
        if error.past == len(buffer):
            found += cut_field(buffer, error.position)
    if not found:
        return None
    kinds = {number: kind for number, kind, _, _ in found}
    first, first_kind, value, stop = found[0]
    if (first, first_kind) == (1, LEN) and is_calculator(buffer, value, stop):
        return Kind.MEDIAPIPE
    if (first, first_kind) == (1, LEN) and is_node(buffer, value, stop):
        return Kind.GRAPH_DEF
    if first_kind == VARINT and first == 1 and kinds.get(7) == LEN and set(kinds) <= {*range(1, 9), 14, 20, 25, 26}:
        return Kind.ONNX
    if kinds.get(1, VARINT) == VARINT and set(kinds) <= {1, 2} and kinds.get(2) == LEN:
        inside = next((value, stop) for number, _, value, stop in found if number == 2)
        if holds_graph(buffer, *inside):
            return Kind.SAVED_MODEL_FILE
    graphs = [(value, stop) for number, kind, value, stop in found if (number, kind) == (2, LEN)]
    if kinds.get(1, LEN) == LEN and set(kinds) <= set(range(1, 8)) and any(is_graph(buffer, *span) for span in graphs):
        return Kind.META_GRAPH
    wanted = {1: LEN, 2: LEN, 3: VARINT, 4: LEN, 5: LEN}
    if all(wanted.get(number) == kind for number, kind in kinds.items()):
        nodes = [(value, stop) for number, _, value, stop in found if number == 1]
        if not nodes or is_node(buffer, *nodes[0]):
            return Kind.GRAPH_DEF
    return None


def cut_field(buffer: Buffer, position: int) -> list[tuple[int, int, int, int]]:
    """The field at ``position`` that runs past the end of the file, as if it ended there."""
    try:
        tag, position = wire.read_varint(buffer, position, len(buffer))
        if tag & 7 == LEN:
            _, position = wire.read_varint(buffer, position, len(buffer))
    except WireError:
        return []
    return [(tag >> 3, tag & 7, position, len(buffer))] if tag & 7 == LEN else []


def is_node(buffer: Buffer, start: int, stop: int) -> bool:
    """Whether a NodeDef lies here: it has a name and an op."""
    name = op = b""
    try:
        for _, number, kind, value, end in wire.fields(buffer, start, stop):
            if kind != LEN or number > LAST_NODE_FIELD:
                return False
            if number == 1:
                name = buffer[value:end]
            elif number == 2:
                op = buffer[value : min(end, value + LONGEST_OP)]
            if name and op:
                return re.fullmatch(OP, op) is not None
    except WireError:
        pass
    return False


def is_calculator(buffer: Buffer, start: int, stop: int) -> bool:
    """Whether a node of MediaPipe's graphs lies here: a class of this name where a NodeDef has its op, and no name, or
    streams and packets where a NodeDef has the device, attrs and where it comes from."""
    parts: dict[int, bytes] = {}
    try:
        for _, number, kind, value, end in wire.fields(buffer, start, stop):
            if kind == LEN:
                parts.setdefault(number, buffer[value : min(end, value + LONGEST_OP)])
    except WireError:
        pass
    if re.fullmatch(rb"\w+Calculator", parts.get(2, b"")) is None:
        return False
    begun = ((4, b"/"), (5, b"\n"), (6, b"\n"))
    return 1 not in parts or not all(parts.get(number, begin).startswith(begin) for number, begin in begun)


def is_graph(buffer: Buffer, start: int, stop: int) -> bool:
    """Whether a GraphDef with nodes lies here, going by its first."""
    try:
        _, number, kind, value, end = next(wire.fields(buffer, start, stop), (0, 0, 0, 0, 0))
    except WireError as error:
        if error.past != stop:
            return False
        cut = cut_field(buffer, error.position)
        number, kind, value, end = cut[0] if cut else (0, 0, 0, 0)
        end = min(end, stop)
    return (number, kind) == (1, LEN) and is_node(buffer, value, end)


def holds_graph(buffer: Buffer, start: int, stop: int) -> bool:
    """Whether a MetaGraphDef with a graph lies here."""
    try:
        for _, number, kind, value, end in wire.fields(buffer, start, stop):
            if (number, kind) == (2, LEN):
                return is_graph(buffer, value, end)
    except WireError as error:
        cut = cut_field(buffer, error.position)
        return bool(cut) and cut[0][0] == 2 and is_graph(buffer, cut[0][2], stop)
    return False
