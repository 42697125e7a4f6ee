"""What ops on strings, Unicode text, sound and regular expressions may be given."""

from __future__ import annotations

import base64
import struct

import numpy as np

from pocketgraph.graph import DType
from random_graphs.growth import Growth
from random_graphs.rules import Given, rule

TEXT = DType.named("string")
FLOAT = DType.named("float")
PATTERNS = (
    b"a+",
    b"[0-9]*",
    b"^h",
    b"o$",
    b"(h)(e)",
    b"l{2}",
    b"\\d+",
    b"x|y",
    b"",
    b".",
    b"\\s",
    b"(?i)HELLO",
    b"a.*d",
)
REWRITES = (b"", b"_", b"<\\0>", b"zz", b"\\\\")
ENCODINGS = (b"UTF-8", b"UTF-16-BE", b"UTF-32-BE", b"US-ASCII", b"ISO-8859-1")


def words(g: Growth, choices: list[bytes], shape: list[int] | None = None) -> str:
    sizes = [g.int(0, 3) for _ in range(g.int(0, 2))] if shape is None else shape
    found = np.empty(int(np.prod(sizes)), object)
    found[:] = [g.pick(choices) for _ in range(found.size)]
    return g.source(found.reshape(sizes), TEXT)


@rule("RegexFullMatch", "RegexReplace", "StaticRegexFullMatch", "StaticRegexReplace")
def patterns(g: Growth) -> Given:
    x = g.tensor(TEXT)
    pattern, rewrite = g.pick(PATTERNS), g.pick(REWRITES)
    static = {"pattern": pattern, "rewrite": rewrite, "replace_global": g.chance()}
    given = [g.const(np.array(v, object), TEXT) for v in (pattern, rewrite)]
    return [x, *given[: 0 if g.op.startswith("Static") else 2]], static


@rule("DecodeBase64")
def from_base64(g: Growth) -> Given:
    made = [base64.urlsafe_b64encode(bytes(g.rng.integers(0, 256, g.int(0, 7)).tolist())) for _ in range(4)]
    return [words(g, [m.rstrip(b"=") if g.chance() else m for m in made])], {}


@rule("DecodeRaw")
def raw(g: Growth) -> Given:
    size = g.types["out_type"].numpy.itemsize * g.int(0, 3)
    made = [bytes(g.rng.integers(0, 100, size).tolist()) for _ in range(3)]
    if g.types["out_type"].name == "bool":
        made = [bytes(g.rng.integers(0, 2, size).tolist()) for _ in range(3)]
    return [words(g, made)], {"little_endian": g.chance(0.7)}


@rule("StringFormat")
def formatted(g: Growth) -> Given:
    kinds = tuple(DType.named(g.pick(["float", "int32", "bool", "string", "double"])) for _ in range(g.int(1, 3)))
    template = b" ".join([b"%s"] * len(kinds)) + g.pick([b"", b" end"])
    return [g.tensor(kind, most=3) for kind in kinds], {
        "template": template, "placeholder": b"%s", "summarize": g.pick([-1, 1, 2, 3]), "T": kinds,
    }  # fmt: skip


@rule("StringNGrams")
def ngrams(g: Growth) -> Given:
    count = g.int(0, 7)
    cuts = sorted(g.rng.integers(0, count + 1, g.int(0, 3)).tolist())
    data = words(g, [b"a", b"bc", b"", b"def"], [count])
    widths = tuple(sorted({g.int(1, 4) for _ in range(g.int(1, 3))}))
    return [data, g.const(np.array([0, *cuts, count]), g.types["Tsplits"])], {
        "separator": g.pick([b" ", b"|", b""]), "ngram_widths": widths, "left_pad": g.pick([b"", b"<"]),
        "right_pad": g.pick([b"", b">"]), "pad_width": g.int(-1, 2), "preserve_short_sequences": g.chance(),
    }  # fmt: skip


def encoded(g: Growth, encoding: bytes) -> list[bytes]:
    good = ["", "aé", "日本", "x\u0001y", "a😀b", "plain"]
    made = [t.encode("utf-16-be" if encoding == b"UTF-16-BE" else "utf-32-be" if encoding == b"UTF-32-BE" else "utf-8")
            for t in good]  # fmt: skip
    return [*made, b"\xff\xfe", b"\xe6\x97", b"a\xc3"] if g.chance(0.4) else made


@rule("UnicodeDecode", "UnicodeDecodeWithOffsets", "UnicodeTranscode")
def decoded(g: Growth) -> Given:
    encoding = g.pick(ENCODINGS)
    shape = [g.int(0, 4)] if g.op != "UnicodeTranscode" else None
    return [words(g, encoded(g, encoding), shape)], {
        "input_encoding": encoding, "output_encoding": g.pick(ENCODINGS[:3]), "errors": g.pick([b"replace", b"ignore"]),
        "replacement_char": g.pick([65533, 32, 63]), "replace_control_characters": g.chance(0.3),
    }  # fmt: skip


@rule("UnicodeEncode")
def written(g: Growth) -> Given:
    count = g.int(0, 7)
    codes = g.rng.choice([65, 233, 0x65E5, 0x1F600, 10, 0xD800, 0x110000, 0], count)
    cuts = sorted(g.rng.integers(0, count + 1, g.int(0, 3)).tolist())
    splits = g.const(np.array([0, *cuts, count]), g.types["Tsplits"])
    return [g.source(codes, DType.named("int32")), splits], {
        "output_encoding": g.pick(ENCODINGS[:3]), "errors": g.pick([b"replace", b"ignore"]),
        "replacement_char": g.pick([65533, 32]),
    }  # fmt: skip


@rule("UnicodeScript")
def scripts(g: Growth) -> Given:
    codes = g.rng.choice(
        [65, 233, 0x65E5, 0x1F600, 10, 0x110000, -1, 0x416, 0x5D0, 0x3042, 0x300, 0xE000, 0x378], g.int(0, 7)
    )
    return [g.source(codes, DType.named("int32"))], {}


@rule("ShardedFilename", "ShardedFilespec")
def shards(g: Growth) -> Given:
    base = g.const(np.array(b"/tmp/model.ckpt", object), TEXT)
    numbers = [g.const(g.int(0, 9)), g.const(g.int(1, 123456))]
    return [base, *(numbers if g.op == "ShardedFilename" else numbers[1:])], {}


@rule("StringToHashBucketStrong")
def hashed(g: Growth) -> Given:
    return [g.tensor(TEXT)], {"num_buckets": g.int(1, 1000), "key": (g.int(0, 99), g.int(0, 99))}


@rule("UnsortedSegmentJoin")
def joined(g: Growth) -> Given:
    x = g.tensor(TEXT, least=1, most=2)
    lead = g.shape(x)[: g.int(1, len(g.shape(x)))]
    return [x, g.source(g.rng.integers(0, 3, lead), g.types["Tindices"]), g.const(3, g.types["Tnumsegments"])], {
        "separator": g.pick([b"", b", "])
    }


# Sound


@rule("AudioSpectrogram")
def spectrogram(g: Growth) -> Given:
    x = g.ordinary(FLOAT, [g.int(10, 300), g.int(1, 2)], -1, 1)
    return [x], {"window_size": g.int(2, 64), "stride": g.int(1, 40), "magnitude_squared": g.chance()}


@rule("Mfcc")
def cepstrum(g: Growth) -> Given:
    x = g.ordinary(FLOAT, [1, g.int(1, 4), 2 ** g.int(5, 8) + 1], 0, 9)
    return [x, g.const(g.pick([8000, 16000, 44100]))], {
        "upper_frequency_limit": g.pick([3000.0, 3999.0]), "lower_frequency_limit": g.pick([20.0, 100.0]),
        "filterbank_channel_count": g.int(5, 40), "dct_coefficient_count": g.int(1, 13),
    }  # fmt: skip


@rule("DecodeWav")
def wav(g: Growth) -> Given:
    channels, count = g.int(1, 2), g.int(0, 12)
    samples = g.rng.integers(-32768, 32768, count * channels).astype("<i2").tobytes()
    form = struct.pack("<IHHIIHH", 16, 1, channels, 8000, 8000 * channels * 2, channels * 2, 16)
    extra = b"LIST" + struct.pack("<I", 4) + b"abcd" if g.chance(0.3) else b""
    body = b"WAVEfmt " + form + extra + b"data" + struct.pack("<I", len(samples)) + samples
    data = b"RIFF" + struct.pack("<I", len(body)) + body
    return [g.const(np.array(data, object), TEXT)], {
        "desired_channels": g.pick([-1, 1, 2, channels]), "desired_samples": g.pick([-1, 3, 20]),
    }  # fmt: skip


@rule("EncodeWav")
def to_wav(g: Growth) -> Given:
    return [g.ordinary(FLOAT, [g.int(0, 9), g.int(1, 2)], -1.2, 1.2), g.const(g.pick([8000, 16000]))], {}


@rule("Substr")
def substr(g: Growth) -> Given:
    text = DType.named("string")
    words = np.array([b"hello", b"word", b"abcdef"], object)[g.rng.integers(0, 3, g.int(1, 3))]
    return [g.source(words, text), g.const(g.int(-4, 3), g.types["T"]), g.const(g.int(0, 5), g.types["T"])], {}


@rule("StringToNumber")
def to_number(g: Growth) -> Given:
    return [g.source(np.array([b"1", b" -22 ", b"7"], object), DType.named("string"))], {}


@rule("StringSplit", "StringSplitV2")
def string_split(g: Growth) -> Given:
    text = DType.named("string")
    return [g.tensor(text, rank=1), g.const(np.array(g.pick([b"", b" ", b","]), object), text)], {
        "skip_empty": g.chance()
    }


@rule("StringToHashBucketFast")
def hashes(g: Growth) -> Given:
    return [g.tensor(DType.named("string"))], {"num_buckets": g.int(1, 1000)}


@rule("ScalarSummary", "HistogramSummary", "TensorSummary", "TensorSummaryV2", "MergeSummary")
def summary(g: Growth) -> Given:
    text = DType.named("string")
    if g.op == "MergeSummary":
        made = [b"", b"\n\x0b\n\x04loss\x15\x00\x00\x00?", b"\n\x08\n\x01n\x15\x00\x00\x80?"]
        count = g.int(1, 3)
        return [g.const(np.array(made[i], object), text) for i in g.rng.permutation(3)[:count]], {"N": count}
    x = g.tensor(g.types["T"])
    if g.op == "ScalarSummary":
        tags = np.full(g.shape(x), b"", object)
        tags.flat = [b"tag%d" % i for i in range(tags.size)]
        return [g.const(tags, text), x], {}
    tag, metadata = (g.const(np.array(word, object), text) for word in (b"tag", b"\x12\x01d"))
    if g.op == "TensorSummaryV2":
        return [tag, x, metadata], {}
    return [x] if g.op == "TensorSummary" else [tag, x], {}
