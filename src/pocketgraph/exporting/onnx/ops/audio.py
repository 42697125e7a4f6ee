"""Sound: spectrograms and what speech models make of them. Files of sound are read outside of the model."""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import option
from pocketgraph.exporting.onnx.converter_table import converts
from pocketgraph.exporting.onnx.onnx_emitter import OnnxEmit
from pocketgraph.exporting.onnx.onnx_program import OnnxValue
from pocketgraph.exporting.onnx.ops.reductions import reduce
from pocketgraph.graph import Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.kernels.audio.spectrograms import QUIETEST, mel_weights
from pocketgraph.litert.operands import KNOWN


@converts("AudioSpectrogram")
def spectrogram(emit: OnnxEmit, node: Node) -> OnnxValue:
    """A short-time Fourier transform of Hann windows, filled with zeros up to the next power of two."""
    emit.since(17, "ONNX has spectrograms")
    sound = emit.input(0)
    size, stride = int(node.attr("window_size", 0)), int(node.attr("stride", 1))
    if size < 2 or stride < 1:
        raise emit.unsupported(f"a window of {size} with stride {stride}")
    length = 1 << (size - 1).bit_length()
    window = np.zeros(length, np.float32)
    window[:size] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    by_channel = emit.unsqueeze(emit.transpose(sound, [1, 0]), [2])
    filled = emit.op("Pad", [by_channel, emit.ints([0, 0, 0, 0, length - size, 0])])
    operands = [filled, emit.const(np.int64(stride)), emit.const(window), emit.const(np.int64(length))]
    parts = emit.op("STFT", operands, [None, None, length // 2 + 1, 2], onesided=1)
    power = reduce(emit, "ReduceSumSquare", parts, [3], False)
    shape = emit.output()[1]
    return power if node.attr("magnitude_squared", False) else emit.op("Sqrt", [power], shape)


@converts("Mfcc")
def mfcc(emit: OnnxEmit, node: Node, value: OnnxValue) -> OnnxValue:
    """Mel bands, logarithm, cosine transform: two matrix products."""
    rate = emit.static_or_none(1)
    if rate is None:
        raise emit.unsupported(
            f"the sample rate must be {KNOWN}: {option('feed', 'values')}={emit.ref(1)}=16000 or the like"
        )
    bins = emit.known_size(value, -1, "the number of frequencies")
    bands, count = int(node.attr("filterbank_channel_count", 40)), int(node.attr("dct_coefficient_count", 13))
    limits = (float(node.attr("lower_frequency_limit", 20.0)), float(node.attr("upper_frequency_limit", 4000.0)))
    weights = mel_weights(bins, float(np.asarray(rate).reshape(-1)[0]), bands, *limits)
    angles = np.pi / bands * np.outer(np.arange(bands) + 0.5, np.arange(count))
    cosines = np.sqrt(2.0 / bands) * np.cos(angles)
    shape = emit.output()[1]
    magnitudes = emit.op("Sqrt", [value], value.shape)
    energies = emit.op("MatMul", [magnitudes, emit.const(weights.astype(np.float32))])
    held = emit.op("Max", [energies, emit.const(np.float32(QUIETEST))])
    return emit.op("MatMul", [emit.op("Log", [held]), emit.const(cosines.astype(np.float32))], shape, FLOAT)


@converts("DecodeWav", "DecodeRaw", "DecodeJpeg", "DecodePng", "DecodeImage", "DecodeBmp", "DecodeGif", "EncodeWav")
def files(emit: OnnxEmit, node: Node) -> None:
    raise emit.unsupported(f"ONNX reads no files: start the model behind it, {option('inputs')}={node.name}")
