"""Layers of Keras that make numbers of raw data: other sizes of pictures, categories, words of a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.formats.keras.composed_operations import Operations
from pocketgraph.formats.keras.layer_writer import KerasTensor, LayerWriter, Rule, as_float, expanded, pair
from pocketgraph.formats.keras.operations import OPERATIONS
from pocketgraph.formats.keras.window_layers import cropped, padded, resized
from pocketgraph.graph import DType, Node, const
from pocketgraph.graph.dtype import FLOAT, INT32, INT64, STRING
from pocketgraph.graph.edit import claim_name

HASH_KEY = 0xDECAFCAFFE
"""What tf.sparse.cross_hashed begins with."""


def resizing(writer: LayerWriter, given: KerasTensor) -> KerasTensor:
    """Pictures in one size; with ``crop_to_aspect_ratio`` of the middle that has its ratio, with
    ``pad_to_aspect_ratio`` as the middle of larger ones that have it."""
    writer.expect(data_format="channels_last")
    value = as_float(writer, given)
    wanted = [int(writer.config[name]) for name in ("height", "width")]
    if writer.config.get("crop_to_aspect_ratio", False):
        height, width = _known(writer, value)
        kept = (min(height, int(width * wanted[0] / wanted[1])), min(width, int(height * wanted[1] / wanted[0])))
        value = _middle(writer, value, kept)
    elif writer.config.get("pad_to_aspect_ratio", False):
        height, width = _known(writer, value)
        more = (int(width * wanted[0] / wanted[1]) - height, int(height * wanted[1] / wanted[0]) - width)
        ends = [(max(0, one) // 2,) * 2 for one in more]  # as many on both sides, also of an odd number
        value = padded(writer, value, ends, float(writer.config.get("fill_value", 0)))
    method = str(writer.config.get("interpolation", "bilinear")).lower()
    made = resized(writer, value, wanted, method, is_centred=True)
    if not given.dtype.is_integer or not writer.model.is_keras_3:
        return made
    made = writer.add("Round", made)  # as Keras 3 does; cubic interpolation may go beyond what the type holds
    if method == "bicubic":
        limits = np.iinfo(given.dtype.numpy)
        most = limits.max if limits.bits < 32 else np.nextafter(np.float32(limits.max), np.float32(0))
        made = writer.add("Minimum", made, writer.const(most, "most", FLOAT))
        made = writer.add("Maximum", made, writer.const(limits.min, "least", FLOAT))
    return writer.add("Cast", made, DstT=given.dtype)


def random_crop(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """What it does outside of training: pictures in one size, as Resizing with ``crop_to_aspect_ratio``; as they are
    since Keras 3.7.

    Raises:
        FormatError: it is of Keras 3.0 to 3.6.
    """
    if re.match(r"3\.[0-6]\b", writer.model.version):
        raise writer.refuse("does outside of training what differs between versions of Keras 3, which is not read")
    if writer.model.is_keras_3:
        return value
    writer.config = {**writer.config, "crop_to_aspect_ratio": True}
    return resizing(writer, value)


def augmentation(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """What changes pictures in training alone; most make floats of whole numbers all the same."""
    is_kept = writer.kind in KEEP_TYPES and writer.model.is_keras_3
    return value if is_kept else as_float(writer, value)


def auto_contrast(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The darkest of each channel becomes black, the brightest white; what has one brightness alone stays as it is."""
    value, ops = as_float(writer, value), Operations(writer, OPERATIONS)
    low, high = (float(one) for one in writer.config.get("value_range", (0, 255)))
    is_usual = (low, high) == (0, 255)
    made = value if is_usual else ops.Multiply(ops.Divide(ops.Subtract(value, low), high - low), 255.0)
    darkest, brightest = (ops.Min(made, [1, 2], True), ops.Max(made, [1, 2], True))
    factor = ops.Divide(255.0, ops.Subtract(brightest, darkest))
    made = ops.Clip(ops.Add(ops.Multiply(made, factor), ops.Multiply(ops.Negative(darkest), factor)), 0.0, 255.0)
    made = made if is_usual else ops.Add(ops.Multiply(ops.Divide(made, 255.0), high - low), low)
    whole: KerasTensor = ops.Where(ops.Isnan(made), value, made)
    return whole


def center_crop(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The middle of pictures; smaller ones become larger, as Resizing with ``crop_to_aspect_ratio`` makes them."""
    writer.expect(data_format="channels_last")
    wanted, value = (int(writer.config["height"]), int(writer.config["width"])), as_float(writer, value)
    if any(size < one for size, one in zip(_known(writer, value), wanted, strict=True)):
        writer.config = {**writer.config, "crop_to_aspect_ratio": True}
        return resizing(writer, value)
    return _middle(writer, value, wanted)


def _known(writer: LayerWriter, value: KerasTensor) -> tuple[int, int]:
    """Height and width.

    Raises:
        FormatError: they are open, or it is no batch of pictures.
    """
    if len(value.dims) != 4 or value.dims[1] is None or value.dims[2] is None:
        raise writer.refuse("takes pictures of open sizes, which is not read")
    return value.dims[1], value.dims[2]


def _middle(writer: LayerWriter, value: KerasTensor, wanted: tuple[int, int]) -> KerasTensor:
    sizes = _known(writer, value)
    starts = [int((size - one) / 2) for size, one in zip(sizes, wanted, strict=True)]
    ends = [(start, size - one - start) for size, one, start in zip(sizes, wanted, starts, strict=True)]
    return cropped(writer, value, ends)


def encoded(writer: LayerWriter, value: KerasTensor, depth: int) -> KerasTensor:
    """Numbers of categories in the layer's ``output_mode``: as they are, or as a place in a vector."""
    mode = str(writer.config.get("output_mode", "int"))
    if mode == "int":
        return value
    if mode not in ("one_hot", "multi_hot", "count", "binary"):
        raise writer.refuse(f"has output_mode={mode}, which is not read")
    if mode == "one_hot" and value.dims[-1] == 1 and len(value.dims) > 1:
        value = writer.add("Squeeze", value, dims=value.dims[:-1], squeeze_dims=(len(value.dims) - 1,))
    on, off = (writer.const(number, "number", FLOAT) for number in (1, 0))
    places = writer.add("OneHot", value, writer.const(depth, "depth"), on, off, dims=(*value.dims, depth), axis=-1)
    if mode == "one_hot" or len(value.dims) < 2:
        return places
    op, along = "Sum" if mode == "count" else "Max", writer.const([len(value.dims) - 1], "axes")
    return writer.add(op, places, along, dims=(*value.dims[:-1], depth))


def category_encoding(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    if value.dtype.is_floating:
        value = writer.add("Cast", value, DstT=INT32)
    writer.config = {"output_mode": "multi_hot", **writer.config}
    return encoded(writer, value, int(writer.config["num_tokens"]))


def discretization(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The number of the range that a value is in."""
    limits = writer.config.get("bin_boundaries")
    if not limits:
        raise writer.refuse("has its bin_boundaries of data, which the file does not hold as numbers")
    made = writer.add("Bucketize", value, boundaries=tuple(float(limit) for limit in limits))
    made = encoded(writer, made, len(limits) + 1)
    is_wide = made.dtype is INT32 and not writer.model.is_keras_3
    return writer.add("Cast", made, DstT=INT64) if is_wide else made


def hashing(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The number of the bin that a text, or the digits of a whole number, falls in."""
    bins, masked = int(writer.config["num_bins"]), writer.config.get("mask_value")
    if masked is None:
        return encoded(writer, bucket(writer, value, bins), bins)
    is_text = value.dtype is STRING  # what is masked has a bin of its own, the first
    is_masked = writer.add(
        "Equal", value, writer.const(str(masked).encode() if is_text else masked, "masked", value.dtype)
    )
    found = writer.add("AddV2", bucket(writer, value, bins - 1), writer.const(1, "first", INT64))
    made = writer.add("SelectV2", is_masked, writer.const(0, "none", INT64), found, dims=value.dims)
    return encoded(writer, made, bins)


def bucket(writer: LayerWriter, value: KerasTensor, count: int) -> KerasTensor:
    """The hash of texts, or of the digits of whole numbers, below a number; with ``salt`` keyed by it."""
    texts, salt = value if value.dtype is STRING else writer.add("AsString", value), writer.config.get("salt")
    if salt is None:
        return writer.add("StringToHashBucketFast", texts, num_buckets=count)
    return writer.add("StringToHashBucketStrong", texts, num_buckets=count, key=pair(salt))


def hashed_crossing(writer: LayerWriter, *inputs: KerasTensor) -> KerasTensor:
    """The number of the bin that texts and whole numbers fall in together."""
    writer.expect(sparse=False)
    bins, dims = int(writer.config["num_bins"]), inputs[0].dims
    columns = [value if value.dtype in (STRING, INT64) else writer.add("Cast", value, DstT=INT64) for value in inputs]
    if len(dims) == 1:
        columns = [expanded(writer, value, 1) for value in columns]
    types = tuple(value.dtype for value in columns)
    crossed = writer.add(
        "SparseCross", (), (), (), columns, dims=(None, 2), N=0, sparse_types=(), dense_types=types, hashed_output=True,
        num_buckets=bins, hash_key=HASH_KEY, out_type=INT64, internal_type=INT64 if INT64 in types else STRING,
    )  # fmt: skip
    bin_of_each = KerasTensor(f"{crossed.ref}:1", (None,), INT64)
    return encoded(writer, writer.reshaped(bin_of_each, dims), bins)


def specials(config: Mapping[str, Any]) -> int:
    """How many numbers a lookup has ahead of its vocabulary's: of what is masked, and of what is in no list."""
    token = config.get("mask_token", "" if "standardize" in config else None)  # a TextVectorization does not say it
    is_masked = token is not None and config.get("output_mode", "int") == "int"
    return int(config.get("num_oov_indices", 1)) + is_masked


def lookup(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The number of a word, or of a whole number, in a vocabulary; with ``invert`` what has a number."""
    writer.expect(sparse=False, salt=None)
    words, rows = writer.config.get("vocabulary"), int(writer.config.get("num_oov_indices", 1))
    if not isinstance(words, (list, tuple)):
        raise writer.refuse("has its vocabulary in no list of the file")
    is_text = writer.kind == "StringLookup"
    key_type = STRING if is_text else INT64
    turned = bool(writer.config.get("invert", False))
    if (turned or not is_text) and value.dtype is not INT64:
        value = writer.add("Cast", value, DstT=INT64)
    token, first = writer.config.get("mask_token"), specials(writer.config)
    keys = [*words, *([token] if first > rows else [])]
    places = [*range(first, first + len(words)), *([0] if first > rows else [])]
    if turned:
        return _table(writer, value, places, keys, writer.config.get("oov_token", "[UNK]" if is_text else -1), INT64,
                      key_type)  # fmt: skip
    found = _table(writer, value, keys, places, first - 1 if rows == 1 else -1, key_type)
    if not rows:
        found = _none_unknown(writer, value, found)
    if rows > 1:
        is_number = not is_text and writer.config.get("oov_method", "floormod") == "floormod"
        row = (
            writer.add("FloorMod", value, writer.const(rows, "rows", INT64))
            if is_number
            else bucket(writer, value, rows)
        )
        row = writer.add("AddV2", row, writer.const(first - rows, "first", INT64))
        is_other = writer.add("Equal", found, writer.const(-1, "unknown", INT64))
        found = writer.add("SelectV2", is_other, row, found, dims=value.dims)
    limit = writer.config.get("max_tokens") if writer.config.get("pad_to_max_tokens") else None
    weighed = writer.config.get("output_mode") == "tf_idf"
    writer.config = {**writer.config, "output_mode": "count"} if weighed else writer.config
    made = encoded(writer, found, int(limit or first + len(words)))
    if weighed:
        return _weighed(writer, made, first)
    return _whole(writer, made)


def _whole(writer: LayerWriter, made: KerasTensor) -> KerasTensor:
    """Places and counts of words, which are whole numbers in Keras 3."""
    return writer.add("Cast", made, DstT=INT64) if made.dtype.is_floating and writer.model.is_keras_3 else made


def _weighed(writer: LayerWriter, counts: KerasTensor, first: int) -> KerasTensor:
    """Counts of words by how rare each is; what is in no vocabulary is as rare as words are on the average."""
    told, names = writer.config.get("idf_weights"), ("idf_weights", "Variable")
    if writer.stores(*names, is_own=True) is not None or not isinstance(told, (list, tuple)):
        return writer.add("Mul", counts, writer.weight(*names))
    weights = [*[np.mean(told)] * first, *told, *[0] * ((counts.dims[-1] or 0) - first - len(told))]
    return writer.add("Mul", counts, writer.const(weights, "weights", FLOAT))


def _none_unknown(writer: LayerWriter, value: KerasTensor, found: KerasTensor) -> KerasTensor:
    """What a table has for each element, an error where it has nothing for one."""
    is_known = writer.add("NotEqual", found, writer.const(-1, "unknown", INT64))
    all_known = writer.add("All", is_known, writer.const(list(range(len(found.dims))), "axes"), dims=())
    message = writer.const(b"all inputs should be in the vocabulary of num_oov_indices=0, found", "message", STRING)
    refs, types = [all_known.ref, message.ref, value.ref], (STRING, value.dtype)
    checked = writer.model.put(
        Node(claim_name(f"{writer.call}/Assert", writer.model.taken), "Assert", refs, {"T": types})
    )
    made = writer.add("Identity", found)
    writer.model.put(writer.model.nodes[made.ref].replace(inputs=[found.ref, f"^{checked}"]))
    return made


PUNCTUATION = rb"""[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']"""
STANDARDS = {None: (), "lower": ("lower",), "strip_punctuation": ("strip",),
             "lower_and_strip_punctuation": ("lower", "strip")}  # fmt: skip
"""What each ``standardize`` does to texts, one after the other."""


def text_vectorization(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The numbers of a text's words, or which of them, or how many, it has.

    Source: keras/src/layers/preprocessing/text_vectorization.py.
    """
    writer.expect(sparse=False, ragged=False, encoding="utf-8")
    config = writer.config
    words, standard, mode = config.get("vocabulary"), config.get("standardize"), str(config.get("output_mode", "int"))
    if not isinstance(words, (list, tuple)):
        raise writer.refuse("has its vocabulary in no list of the file")
    if not isinstance(standard, (str, type(None))) or standard not in STANDARDS:
        raise writer.refuse("standardizes texts by code of Python, which is not run")
    for change in STANDARDS[standard]:
        if change == "lower":
            value = writer.add("StringLower", value)
        else:
            value = writer.add("StaticRegexReplace", value, pattern=PUNCTUATION, rewrite=b"")
    first = specials(config)
    words = list(words)[first:] if words[first - 1 : first] == ["[UNK]"] else list(words)
    keys = [*words, *([""] if first == 2 else [])]
    places = [*range(first, first + len(words)), *([0] if first == 2 else [])]
    limit = int(config["max_tokens"]) if config.get("pad_to_max_tokens") else first + len(words)
    length = config.get("output_sequence_length")
    if config.get("split") is None:
        writer.expect(ngrams=None, output_sequence_length=None)
        found = _table(writer, value, keys, places, first - 1, STRING)
        writer.config = {**config, "output_mode": "count" if mode == "tf_idf" else mode}
        made = encoded(writer, found, limit)
    else:
        pieces, ends = _pieces(writer, value)
        found = _table(writer, pieces, keys, places, first - 1, STRING)
        if mode == "int":
            zero, shape = writer.const(0, "none", INT64), writer.const([-1, length or -1], "shape", INT64)
            return writer.add("RaggedTensorToTensor", shape, found, zero, [ends], dims=(value.dims[0], length),
                              row_partition_types=(b"ROW_SPLITS",))  # fmt: skip
        weights = writer.const(np.zeros(0), "weights", FLOAT)
        made = writer.add(
            "RaggedBincount", ends, found, writer.const(limit, "depth", INT64), weights, dims=(value.dims[0], limit),
            binary_output=mode == "multi_hot",
        )  # fmt: skip
    if mode == "tf_idf":
        return _weighed(writer, made, first)
    return _whole(writer, made)


def _pieces(writer: LayerWriter, value: KerasTensor) -> tuple[KerasTensor, KerasTensor]:
    """The words or letters of all texts, and where in them each text begins and ends."""
    if len(value.dims) > 1:
        value = writer.add("Squeeze", value, dims=value.dims[:-1], squeeze_dims=(len(value.dims) - 1,))
    split, zero, one = writer.config["split"], writer.const([0], "zero", INT64), writer.const(1, "one", INT64)
    if split == "character":
        ends = writer.add("UnicodeDecode", value, dims=(None,), input_encoding=b"UTF-8", Tsplits=INT64)
        letters = KerasTensor(f"{ends.ref}:1", (None,), INT32)
        count = writer.add("Size", letters, dims=(), out_type=INT64)
        each = writer.add("Range", writer.const(0, "first", INT64), writer.add("AddV2", count, one), one, dims=(None,))
        pieces = writer.add("UnicodeEncode", letters, each, dims=(None,), output_encoding=b"UTF-8")
    elif split == "whitespace":
        rows = writer.add("StringSplitV2", value, writer.const(b"", "separator", STRING), dims=(None, 2))
        pieces = KerasTensor(f"{rows.ref}:1", (None,), STRING)
        row = writer.add("StridedSlice", rows, *(writer.const(at, "at") for at in ([0, 0], [0, 1], [1, 1])),
                         dims=(None,), begin_mask=1, end_mask=1, shrink_axis_mask=2)  # fmt: skip
        ones = writer.add("Fill", writer.add("Shape", pieces, dims=(1,)), one, dims=(None,))
        counts = writer.add("UnsortedSegmentSum", ones, row, writer.size(value, 0), dims=(value.dims[0],))
        sums = writer.add("Cumsum", counts, writer.const(0, "axis"))
        ends = writer.add("ConcatV2", [zero, sums], writer.const(0, "axis"), dims=(None,))
    else:
        raise writer.refuse("splits texts by code of Python, which is not run")
    widths = writer.config.get("ngrams")
    if widths is None:
        return pieces, ends
    widths = tuple(range(1, widths + 1)) if isinstance(widths, int) else tuple(map(int, widths))
    grams = writer.add(
        "StringNGrams", pieces, ends, dims=(None,), separator=b" ", ngram_widths=widths, left_pad=b"", right_pad=b"",
        pad_width=0, preserve_short_sequences=False,
    )  # fmt: skip
    return grams, KerasTensor(f"{grams.ref}:1", (None,), INT64)


def _table(
    writer: LayerWriter,
    value: KerasTensor,
    keys: Sequence[object],
    places: Sequence[object],
    usual: object,
    key_type: DType,
    place_type: DType = INT64,
) -> KerasTensor:
    """What a table of keys and places has for each element."""

    def listed(name: str, held: object, dtype: DType) -> KerasTensor:
        """A constant of texts or whole numbers, which a file may have as texts."""
        texts = np.asarray(held, str)
        array = np.char.encode(texts, "utf-8").astype(object) if dtype is STRING else texts.astype(np.int64)
        made = const(claim_name(f"{writer.call}/{name}", writer.model.taken), array, dtype)
        return KerasTensor(writer.model.put(made), array.shape, dtype)

    known = listed("keys", keys, key_type)
    table = writer.add("HashTableV2", dims=(), key_dtype=key_type, value_dtype=place_type,
                       shared_name=known.ref.encode())  # fmt: skip
    refs = [table.ref, known.ref, listed("places", places, place_type).ref]
    name = claim_name(f"{writer.call}/fill", writer.model.taken)
    filled = writer.model.put(Node(name, "InitializeTableV2", refs, {"Tkey": key_type, "Tval": place_type}))
    found = writer.add("LookupTableFindV2", table, value, listed("unknown", usual, place_type), dims=value.dims)
    node = writer.model.nodes[found.ref]
    writer.model.put(node.replace(inputs=[*node.inputs, f"^{filled}"]))
    return found


KEEP_TYPES = (
    "MixUp", "MaxNumBoundingBoxes", "RandomBrightness", "RandomColorDegeneration", "RandomColorJitter",
    "RandomContrast", "RandomGrayscale", "RandomHue", "RandomInvert", "RandomPosterization", "RandomSaturation",
)  # fmt: skip
"""Augmentations of Keras 3 that leave whole numbers whole."""
RULES: dict[str, Rule] = {
    **dict.fromkeys(
        (*KEEP_TYPES, "AugMix", "CutMix", "RandAugment", "RandomElasticTransform", "RandomErasing", "RandomFlip",
         "RandomGaussianBlur", "RandomPerspective", "RandomRotation", "RandomSharpness", "RandomShear",
         "RandomTranslation", "RandomZoom", "Solarization"), augmentation,
    ),
    "AutoContrast": auto_contrast, "Resizing": resizing, "CenterCrop": center_crop,
    "CategoryEncoding": category_encoding,
    "Discretization": discretization, "Hashing": hashing, "HashedCrossing": hashed_crossing,
    "StringLookup": lookup, "IntegerLookup": lookup,
    "RandomCrop": random_crop, "TextVectorization": text_vectorization,
}  # fmt: skip
