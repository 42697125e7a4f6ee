"""Pictures decoded: exact where the file is, near where JPEG leaves the rounding free; damaged files refused."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node
from pocketgraph.kernels import evaluate

RAMP = (np.arange(5 * 7 * 3).reshape(5, 7, 3) * 2).astype(np.uint8)


def saved(array: np.ndarray, kind: str, **options: object) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind, **options)
    return np.array(file.getvalue(), dtype=object)


def decoded(op: str, contents: np.ndarray, **attrs: object) -> np.ndarray:
    return evaluate(Node("n", op, (), attrs), (contents,))[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("op", ["DecodePng", "DecodeImage", "DecodeJpeg"])
def test_png(op: str) -> None:
    np.testing.assert_array_equal(decoded(op, saved(RAMP, "PNG")), RAMP)
    np.testing.assert_array_equal(decoded(op, saved(RAMP[..., 0], "PNG")), RAMP[..., :1])
    np.testing.assert_array_equal(decoded(op, saved(RAMP[..., 0], "PNG"), channels=3), RAMP[..., [0, 0, 0]])
    assert decoded(op, saved(RAMP, "PNG"), channels=4)[..., 3].min() == 255


def test_bmp_and_types() -> None:
    np.testing.assert_array_equal(decoded("DecodeBmp", saved(RAMP, "BMP")), RAMP)
    floats = decoded("DecodeImage", saved(RAMP, "PNG"), dtype=DType.named("float"))
    np.testing.assert_allclose(floats, RAMP / 255, rtol=1e-6)
    wide = decoded("DecodePng", saved(RAMP, "PNG"), dtype=DType.named("uint16"))
    np.testing.assert_array_equal(wide, RAMP.astype(np.uint16) * 257)


def test_jpeg() -> None:
    smooth = np.broadcast_to(np.linspace(20, 220, 64)[:, None, None], (64, 48, 3)).astype(np.uint8)
    contents = saved(smooth, "JPEG", quality=95)
    assert np.abs(decoded("DecodeJpeg", contents).astype(int) - smooth).max() <= 4
    assert decoded("DecodeJpeg", contents, channels=1).shape == (64, 48, 1)
    assert decoded("DecodeJpeg", contents, ratio=2).shape == (32, 24, 3)
    with pytest.raises(RunError, match="ratio"):
        decoded("DecodeJpeg", contents, ratio=3)


def test_gif() -> None:
    frames = [Image.new("RGB", (4, 3), colour) for colour in ("red", "lime")]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    contents = np.array(file.getvalue(), object)
    whole = decoded("DecodeGif", contents)
    assert whole.shape == (2, 3, 4, 3)
    np.testing.assert_array_equal(whole[:, 0, 0], [[255, 0, 0], [0, 255, 0]])
    assert decoded("DecodeImage", contents).shape == (2, 3, 4, 3)
    assert decoded("DecodeImage", contents, expand_animations=False).shape == (3, 4, 3)


@pytest.mark.parametrize("data", [b"", b"no picture", saved(RAMP, "PNG").item()[:40], saved(RAMP, "JPEG").item()[:200]])
def test_damaged(data: bytes) -> None:
    with pytest.raises(RunError) as caught:
        decoded("DecodeJpeg", np.array(data, object))
    assert "\n" not in str(caught.value)
