"""Targets: ops that decode bytes of strangers, as a session runs them.

A kernel's exception is an error of ours there by design: what is looked for are dead processes, time and memory.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np

from fuzz.data_readers import PICTURE_WORDS, pictures, wav
from fuzz.mutations import message_changed
from fuzz.targets import Mutator, Seeds, target
from pocketgraph.graph import DType, Node
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels import evaluate
from pocketgraph.protobuf.wire import LEN, bytes_field, number_field, payloads
from pocketgraph.runtime import Session

X = "x = Placeholder(dtype=string, shape=[])\n"
ROW = "x = Placeholder(dtype=string, shape=[1])\n"
MEMORY = 1 << 28  # bytes that a run may take


@functools.cache
def session(text: str) -> Session:
    return Session(parse(text), engine="reference", memory_limit=MEMORY)


def run(texts: list[str], data: bytes) -> None:
    """Runs the graph that the first byte chooses on the rest."""
    if not data:
        return
    text = texts[data[0] % len(texts)]
    value = np.empty(() if "shape=[])" in text else (1,), object)
    value[...] = data[1:]
    session(text).run(["y"], {"x": value})


def ops(
    name: str, covers: str, texts: list[str], seeds: Seeds, words: Iterable[bytes] = (), mutate: Mutator | None = None
) -> None:
    """A target of these graphs."""

    def read(data: bytes) -> None:
        run(texts, data)

    def changed(data: bytes, most: int, rng: object, plain: object) -> bytes:
        assert mutate is not None
        return data[:1] + mutate(data[1:], most - 1, rng, plain)  # type: ignore[arg-type, call-arg]

    read.__name__ = name
    target(
        covers,
        lambda: [bytes([n]) + seed for n in range(len(texts)) for seed in seeds()],
        words,
        changed if mutate else None,
    )(read)  # type: ignore[arg-type]


ops(
    "op_pictures", "kernels/image/decoding.py",
    [X + f"y = {op}(x)" for op in ("DecodePng", "DecodeJpeg", "DecodeGif", "DecodeBmp", "DecodeImage", "DecodeWebP")],
    lambda: pictures("PNG", "JPEG", "GIF", "BMP", "WEBP"), PICTURE_WORDS,
)  # fmt: skip
ops(
    "op_sound", "kernels/audio/wav.py",
    [X + "y = DecodeWav(x)", X + "y = DecodeWav(x, desired_channels=2, desired_samples=2147483647)"],
    lambda: [wav(1, 16000, bytes(64)), wav(2, 8000, bytes(range(64)))], (b"RIFF", b"WAVE", b"fmt ", b"data"),
)  # fmt: skip


def example(*features: tuple[bytes, int, bytes]) -> bytes:
    """A tf.Example of features: name, number of the kind, the encoded list."""
    entries = [bytes_field(1, name) + bytes_field(2, bytes_field(kind, values)) for name, kind, values in features]
    return bytes_field(1, b"".join(bytes_field(1, entry) for entry in entries))


EXAMPLES = [
    example((b"a", 3, bytes_field(1, b"\x01\x02")), (b"b", 1, bytes_field(1, b"text"))),
    example((b"a", 2, bytes_field(1, b"\0\0\x80?"))),
    b"",
]
KEYS = 'n = Const(string[0] "")\na = Const(string "a")\nb = Const(string "b")\nd = Const(int64 [7])\n'
KINDS = "sparse_types=[string], Tdense=[int64], dense_shapes=[[1]]"
JSON = b'{"features": {"feature": {"a": {"int64List": {"value": [1]}}}}}'
ops(
    "op_examples",
    "kernels/parsing/example_records.py kernels/parsing/examples.py kernels/parsing/record_batches.py "
    "kernels/parsing/example_walk.py kernels/parsing/example_columns.py kernels/parsing/example_keys.py "
    "kernels/parsing/serialized_tensors.py kernels/parsing/json_examples.py",
    [
        f"{ROW}{KEYS}y = ParseExample(x, n, b, a, d, Nsparse=1, Ndense=1, {KINDS})",
        f'{X}{KEYS}y = ParseSingleExample(x, d, num_sparse=1, sparse_keys=["b"], dense_keys=["a"], {KINDS})',
        f"{X}y = ParseTensor(x, out_type=float)",
        f"{X}y = ParseTensor(x, out_type=string)",
        f"{X}y = DecodeJSONExample(x)",
    ],
    lambda: [*EXAMPLES, b"\x08\x01\x12\x04\x12\x02\x08\x02\x22\x08\0\0\0\0\0\0\0\0", JSON],
    b"a b features feature int64List floatList bytesList value [ { 1e999".split(),
    message_changed,
)
TEXT = X + 's = Const(string "aaab")\n'
ops(
    "op_texts",
    "kernels/parsing/csv_and_raw_bytes.py kernels/text/strings.py kernels/text/unicode.py",
    [
        f'{X}d = Const(float [1])\ne = Const(string [""])\ny = DecodeCSV(x, d, e, OUT_TYPE=[float, string])',
        f"{X}y = DecodeRaw(x, out_type=float)",
        f'{X}y = DecodeCompressed(x, compression_type="ZLIB")',
        f'{X}y = DecodeCompressed(x, compression_type="GZIP")',
        f"{X}y = StringToNumber(x, out_type=int32)",
        f"{X}y = StringToNumber(x, out_type=double)",
        f"{X}y = DecodeBase64(x)",
        f'{ROW}y = UnicodeDecodeWithOffsets(x, input_encoding="UTF-8")',
        f'{ROW}y = UnicodeTranscode(x, input_encoding="UTF-16-BE", output_encoding="UTF-8")',
        f"{TEXT}y = RegexFullMatch(s, x)",
        f'{TEXT}r = Const(string "\\\\1")\ny = RegexReplace(s, x, r)',
        f'{TEXT}p = Const(string "(a)")\ny = RegexReplace(s, p, x)',
        f'{ROW}d = Const(string ",")\ny = StringSplitV2(x, d)',
        f'{X}y = StringLower(x, encoding="utf-8")',
    ],
    lambda: [*b"1,a 12345678 1.5e3 YWJj (a+)+b [[:alpha:]]* \\1\\0 caf\xc3\xa9".split(), b"x\x9ccb`\0\0\0\x03\0\x01"],
    rb'(?i) (?P<n> [^ {1,1000} *? | \d \pL \C " , inf nan 0x'.split(),
)


def described() -> bytes:
    """The message type M with fields a, b and c: int32, repeated string, repeated double."""
    fields = (
        bytes_field(2, bytes_field(1, name) + number_field(3, place) + number_field(4, label) + number_field(5, kind))
        for place, (name, label, kind) in enumerate((("a", 1, 5), ("b", 3, 9), ("c", 3, 1)), 1)
    )
    return bytes_field(1, bytes_field(4, bytes_field(1, "M") + b"".join(fields)))


@target(
    "kernels/parsing/protocol_messages.py",
    lambda: [bytes_field(1, described()) + bytes_field(2, b"\x08\x05\x12\x01x\x1a\x08" + bytes(8))],
    (b"M", b"a", b"b", b"c"),
    message_changed,
)
def read_op_messages(data: bytes) -> None:
    """Field 1 describes messages, field 2 is one of them."""
    try:
        parts = {number: bytes(value) for number, kind, value in payloads(data) if kind == LEN}
    except ValueError:
        return
    attrs = {
        "message_type": b"M", "descriptor_source": b"bytes://" + parts.get(1, b""), "field_names": (b"a", b"b", b"c"),
        "output_types": tuple(map(DType.named, ("int32", "string", "double"))),
    }  # fmt: skip
    evaluate(Node("y", "DecodeProtoV2", (), attrs), [np.array([parts.get(2, b"")], object)])
