"""Summaries: values as the Summary messages that TensorBoard reads, byte for byte as TensorFlow writes them.

Sources: tensorflow/core/framework/summary.proto and tensor.proto (field numbers), core/lib/histogram/histogram.cc (the
limits of the buckets, and how runs of empty ones become one).
"""

from __future__ import annotations

import struct
import sys
from functools import cache

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.graph import DType
from pocketgraph.kernels.arrays import Array
from pocketgraph.kernels.audio.wav import encode_wav
from pocketgraph.kernels.parsing.serialized_tensors import tensor_message
from pocketgraph.kernels.registry import Context, kernel
from pocketgraph.protobuf.wire import FIXED32, FIXED64, LEN, WireError, bytes_field, number_field, payloads, varint

LARGEST = sys.float_info.max


def string(value: bytes) -> Array:
    """A scalar string tensor."""
    return np.array(value, object)


def tag_of(value: Array) -> bytes:
    """A scalar tag.

    Raises:
        RunError: it is no scalar.
    """
    if value.size != 1 or value.ndim > 1:
        raise RunError(f"tags must be scalar, not of shape {list(value.shape)}")
    found: bytes = value.reshape(()).item()
    return found


@kernel("ScalarSummary")
def scalar_summary(tags: Array, values: Array) -> Array:
    """One Value with a ``simple_value`` (float32) for each tag."""
    if tags.shape != values.shape and not (tags.size == values.size == 1 and max(tags.ndim, values.ndim) <= 1):
        raise RunError(f"tags and values are not the same shape: {list(tags.shape)} != {list(values.shape)}")
    out = b""
    numbers = values.astype(np.float32).ravel()
    for tag, number in zip(tags.ravel().tolist(), numbers, strict=True):
        out += bytes_field(
            1, (bytes_field(1, tag) if tag else b"") + varint(2 << 3 | FIXED32) + struct.pack("<f", number)
        )
    return string(out)


@cache
def bucket_limits() -> Array:
    """The upper limits of the buckets: 1e-12 growing by a tenth up to 1e20, mirrored, with 0 and the largest double."""
    above, limit = [], 1.0e-12
    while limit < 1.0e20:
        above.append(limit)
        limit *= 1.1
    above.append(LARGEST)
    return np.array([*(-v for v in reversed(above)), 0.0, *above])


def _double_field(number: int, value: float) -> bytes:
    """A double of a message, which is left out when all of its bits are zero."""
    stored = struct.pack("<d", value)
    return varint(number << 3 | FIXED64) + stored if any(stored) else b""


def histogram(values: Array) -> bytes:
    """The HistogramProto of finite numbers."""
    numbers = values.astype(np.float64).ravel()
    limits = bucket_limits()
    places = np.minimum(np.searchsorted(limits, numbers, side="right"), limits.size - 1)
    counts = np.bincount(places, minlength=limits.size).astype(np.float64)
    # The last of each run of empty buckets speaks for the run.
    full = counts > 0
    kept = full | np.append(full[1:], True)
    total = float(np.cumsum(np.append(0.0, numbers))[-1])  # one by one, as no pairwise sum would
    squares = float(np.cumsum(np.append(0.0, numbers * numbers))[-1])
    # the first of what is equal, because -0 is written and 0 is not
    out = _double_field(1, float(numbers[numbers.argmin()]) if numbers.size else LARGEST)
    out += _double_field(2, float(numbers[numbers.argmax()]) if numbers.size else -LARGEST)
    out += _double_field(3, float(numbers.size)) + _double_field(4, total) + _double_field(5, squares)
    out += bytes_field(6, limits[kept].astype("<f8").tobytes())
    return out + bytes_field(7, counts[kept].astype("<f8").tobytes())


@kernel("HistogramSummary")
def histogram_summary(tag: Array, values: Array, *, context: Context) -> Array:
    """One Value with a histogram of ``values``, which are counted, summed and squared in double."""
    name = tag_of(tag)
    numbers = values.astype(np.float64)
    for wrong, said in ((np.isnan(numbers), "Nan"), (np.isinf(numbers), "Infinity")):
        if wrong.any():
            raise RunError(f"{said} in summary histogram for: {context.node.name}")
    return string(bytes_field(1, (bytes_field(1, name) if name else b"") + bytes_field(5, histogram(numbers))))


@kernel("MergeSummary")
def merge_summary(*inputs: Array) -> Array:
    """All values of serialized summaries in one.

    Raises:
        RunError: one is no Summary, or two values have the same tag.
    """
    out, seen = b"", set[bytes]()
    for item in (item for array in inputs for item in array.ravel().tolist()):
        try:
            values = [value for number, kind, value in payloads(item) if (number, kind) == (1, LEN)]
            tags = [b"".join(text for n, k, text in payloads(value) if (n, k) == (1, LEN)) for value in values]
        except WireError:
            raise RunError("Could not parse one of the summary inputs") from None
        for value, tag in zip(values, tags, strict=True):
            if tag and tag in seen:
                raise RunError(f"Duplicate tag {tag.decode(errors='replace')} found in summary inputs")
            seen.add(tag)
            out += bytes_field(1, value)
    return string(out)


@kernel("TensorSummary")
def tensor_summary(tensor: Array, *, T: DType, context: Context) -> Array:
    """One Value with the whole tensor, under the node's name; what describes it is not written."""
    return string(
        bytes_field(1, bytes_field(7, context.node.name.encode()) + bytes_field(8, tensor_message(tensor, T.base)))
    )


@kernel("TensorSummaryV2")
def tensor_summary_v2(tag: Array, tensor: Array, serialized_summary_metadata: Array, *, T: DType) -> Array:
    """One Value with the whole tensor, a tag, and the metadata that were given."""
    name, metadata = tag_of(tag), serialized_summary_metadata.reshape(()).item()
    head = bytes_field(1, name) if name else b""
    return string(bytes_field(1, head + bytes_field(8, tensor_message(tensor, T.base)) + bytes_field(9, metadata)))


@kernel("AudioSummary")
def audio_summary(tag: Array, tensor: Array, *, sample_rate: float, max_outputs: int = 3) -> Array:
    """One Value with a WAV file for each of the first sounds of ``tensor`` (sounds, frames[, channels]) in -1…1."""
    name = tag_of(tag)
    if tensor.ndim not in (2, 3):
        raise RunError(f"Tensor must be 3-D or 2-D, got: {list(tensor.shape)}")
    sounds = tensor if tensor.ndim == 3 else tensor[:, :, None]
    rate = np.float32(sample_rate)
    out = b""
    for number, sound in enumerate(sounds[: max(max_outputs, 1)]):
        wav = encode_wav(sound, np.asarray(np.rint(rate), np.int32)).item()
        said = varint(1 << 3 | FIXED32) + rate.tobytes() if rate else b""
        for place, count in ((2, sound.shape[1]), (3, sound.shape[0])):
            said += number_field(place, count) if count else b""
        said += bytes_field(4, wav) + bytes_field(5, b"audio/wav")
        ending = b"/audio/%d" % number if max_outputs > 1 else b"/audio"
        out += bytes_field(1, bytes_field(1, name + ending) + bytes_field(6, said))
    return string(out)


@kernel("AudioSummaryV2")
def audio_summary_v2(tag: Array, tensor: Array, sample_rate: Array, *, max_outputs: int = 3) -> Array:
    """As AudioSummary, the rate in Hz an input."""
    return audio_summary(tag, tensor, sample_rate=sample_rate.reshape(()).item(), max_outputs=max_outputs)
