"""Spectra of recordings."""

from __future__ import annotations

from typing import Any

import numpy as np

from pocketgraph.exporting.coreml.operator_table import translates
from pocketgraph.exporting.coreml.translation import Translation
from pocketgraph.exporting.onnx.onnx_program import OnnxOperation


@translates("STFT")
def short_time_spectrum(to: Translation, operation: OnnxOperation, signal: Any) -> Any:
    """Frames gathered, windowed, and multiplied with cosines and sines: [batch, frames, frequencies, 2]."""
    (step,) = to.integers(operation, 1, "how far frames are apart")
    window = to.static_or_none(operation, 2)
    given = to.static_or_none(operation, 3)
    length = int(given.reshape(-1)[0]) if given is not None else 0 if window is None else len(window)
    batch, count = (int(size) for size in signal.shape[:2])
    starts = np.arange(0, count - length + 1, step, dtype=np.int32)
    places = starts[:, None] + np.arange(length, dtype=np.int32)
    flat = to.op("reshape", x=signal, shape=[batch, count])
    frames = to.op("gather", x=flat, indices=places, axis=1)
    frequencies = length // 2 + 1 if operation.attrs.get("onesided", 1) else length
    turns = np.outer(np.arange(length), np.arange(frequencies)) % length * (2 * np.pi / length)
    weight = np.ones(length) if window is None else window.astype(np.float64).reshape(-1)
    parts = [(weight[:, None] * part).astype(np.float32) for part in (np.cos(turns), -np.sin(turns))]
    return to.op("stack", values=[to.op("matmul", x=frames, y=part) for part in parts], axis=3)
