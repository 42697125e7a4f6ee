"""Sound at its edges: cepstral coefficients of bands without a frequency, and WAV files of writers that do not pad."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import Node
from pocketgraph.kernels import evaluate


def mfcc(frames: int, bins: int, **attrs: Any) -> np.ndarray[Any, Any]:
    return evaluate(Node("mfcc", "Mfcc", (), attrs), [np.ones((2, frames, bins), np.float32), np.int32(8000)])[0]


def test_bands_that_no_frequency_reaches_are_as_quiet_as_can_be() -> None:
    narrow = {"upper_frequency_limit": 100.0, "filterbank_channel_count": 5, "dct_coefficient_count": 1}
    np.testing.assert_allclose(mfcc(3, 9, **narrow), np.full((2, 3, 1), -87.37696), rtol=1e-6)  # TensorFlow's
    assert mfcc(0, 65, **narrow).shape == (2, 0, 1)


def test_more_coefficients_than_bands_are_refused() -> None:
    with pytest.raises(RunError, match="13 coefficients of 5 mel bands; there can be 5 at most"):
        mfcc(1, 65, filterbank_channel_count=5)


@pytest.mark.parametrize("between", [b"", b"LIST\3\0\0\0abc", b"LIST\3\0\0\0abc\0", b"LIST\4\0\0\0abcd"])
def test_odd_chunks_with_and_without_a_byte_of_padding(between: bytes) -> None:
    form = struct.pack("<HHIIHH", 1, 1, 16000, 32000, 2, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + between + b"data" + struct.pack("<I", 2) + b"|'"
    file = np.array(b"RIFF" + struct.pack("<I", len(body)) + body, object)
    samples, rate = evaluate(Node("wav", "DecodeWav", (), {"desired_channels": 2, "desired_samples": 2}), [file])
    np.testing.assert_allclose(samples, [[0.30847168, 0.30847168], [0, 0]])
    assert rate == 16000
