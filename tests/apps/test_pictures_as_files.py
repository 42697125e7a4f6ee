"""Models that take and give pictures as files, in base64: what ships takes and gives pixels."""

from __future__ import annotations

import base64
import io
import pathlib

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from pocketgraph.apps.shipping.encoded_pictures import pictures_before_encoding
from pocketgraph.apps.shipping.ship import ship
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse

PICTURE_TO_PICTURE = """
    files = Placeholder(dtype=string, shape=[1])
    first = Const(int32[1] [0])
    last = Const(int32[1] [1])
    one = Const(int32[1] [1])
    file = StridedSlice(files, first, last, one, T=string, Index=int32, shrink_axis_mask=1)
    content = DecodeBase64(file)
    pixels = DecodePng(content, channels=3)
    plain = Cast(pixels, SrcT=uint8, DstT=float)
    most = Const(float 255)
    shares = RealDiv(plain, most, T=float)
    axis = Const(int32 0)
    batch = ExpandDims(shares, axis, T=float, Tdim=int32)
    smaller = Conv2D(batch, encoder, T=float, strides=[1, 2, 2, 1], padding="SAME")
    sides = Const(int32[4] [1, 16, 16, 3])
    larger = Conv2DBackpropInput(sides, decoder, smaller, T=float, strides=[1, 2, 2, 1], padding="SAME")
    squashed = Sigmoid(larger, T=float)
    values = Mul(squashed, most, T=float)
    bytes = Cast(values, SrcT=float, DstT=uint8)
    alone = StridedSlice(bytes, first, last, one, T=uint8, Index=int32, shrink_axis_mask=1)
    png = EncodePng(alone, T=uint8)
    text = EncodeBase64(png)
    answer = Pack(text, T=string, N=1)
"""


def graph() -> Graph:
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=(4, 4, 3, 4)).astype(np.float32) / 4 for name in ("encoder", "decoder")}
    return Graph([*(const(name, value) for name, value in weights.items()), *parse(PICTURE_TO_PICTURE)])


@pytest.fixture
def photos(tmp_path: pathlib.Path) -> pathlib.Path:
    folder, rng = tmp_path / "photos", np.random.default_rng(1)
    folder.mkdir()
    for at in range(30):
        coarse = Image.fromarray(rng.integers(0, 256, (4, 5, 3)).astype(np.uint8))
        coarse.resize((50, 40)).save(folder / f"{at:02}.png")
    return folder


def test_pictures_in_and_out_ship_as_pixels(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The weights take 16 x 16 alone, which neither the placeholder nor the photos of 50 x 40 say."""
    whole = graph()
    assert pictures_before_encoding(whole, ["answer", "squashed"]) == {"answer": "values"}
    pocketgraph.save(whole, tmp_path / "model.pb")
    told: list[str] = []
    made = ship(tmp_path / "model.pb", tmp_path / "out", photos, outputs=["answer"], notify=told.append)
    assert "the pixels ship, values; making files of them is the app's" in told
    assert any("the part behind 'shares' ships" in line or "the part behind 'batch' ships" in line for line in told)
    assert any("resized to 16 x 16, as it does not take 50 x 40" in line for line in told)
    assert made.is_proved
    pixels = np.asarray(Image.open(photos / "00.png").resize((16, 16)))
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    fed = np.array([base64.urlsafe_b64encode(file.getvalue())], object)
    (answer,) = pocketgraph.Session(whole).run(["answer"], {"files": fed})
    wanted = np.asarray(Image.open(io.BytesIO(base64.urlsafe_b64decode(answer[0] + b"=="))))
    shipped = pocketgraph.Session(pocketgraph.load(tmp_path / "out" / "model.tflite"))
    (found,) = shipped.run(list(shipped.outputs), {next(iter(shipped.inputs)): np.float32(pixels[None]) / 255})
    np.testing.assert_allclose(found[0], wanted, atol=6)
