"""Sizes that files of samples have, for models that leave theirs open."""

import os
import pathlib
import wave

import numpy as np
import pytest
from PIL import Image

from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.datasets.file_lists import files_in
from pocketgraph.datasets.file_sizes import MOST_PIXELS, common_side, files_of, usual_length
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.recordings import rate_of, sample_count
from pocketgraph.datasets.sample_reading import SampleReading
from pocketgraph.errors import UsageError
from pocketgraph.exporting.devices.device_fit import fit
from pocketgraph.graph import Graph
from pocketgraph.graph.graph import Versions
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_shapes


def picture(path: pathlib.Path, width: int, height: int) -> str:
    Image.new("RGB", (width, height)).save(path)
    return str(path)


def recording(path: pathlib.Path, count: int, rate: int = 16000, channels: int = 1) -> str:
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, count, "NONE", ""))
        file.writeframes(np.zeros(count * channels, "<i2").tobytes())
    return str(path)


def test_pictures_of_one_size_have_a_common_side(tmp_path: pathlib.Path) -> None:
    files = [picture(tmp_path / f"{at}.png", 60, 40) for at in range(3)]
    assert common_side(files) == (40, 60)
    assert common_side([*files, picture(tmp_path / "other.png", 61, 40)]) is None


def test_pictures_beside_the_folders_of_the_classes_have_no_say_in_sizes(tmp_path: pathlib.Path) -> None:
    for at in range(2):
        (tmp_path / f"{at}").mkdir()
        picture(tmp_path / f"{at}" / "a.png", 60, 40)
    picture(tmp_path / "stray.png", 61, 40)
    assert common_side(files_of(tmp_path)) == (40, 60)


def test_photos_of_a_camera_are_too_large_to_be_fed_as_they_are(tmp_path: pathlib.Path) -> None:
    side = int(MOST_PIXELS**0.5) + 1
    assert common_side([picture(tmp_path / "a.png", side, side)]) is None


@pytest.mark.parametrize("channels", [1, 2])
def test_headers_of_recordings_tell_their_length(tmp_path: pathlib.Path, channels: int) -> None:
    path = recording(tmp_path / "a.wav", 8001, 8000, channels)
    assert rate_of(path) == 8000
    assert (sample_count(path, 8000), sample_count(path, 16000)) == (8001, 16002)
    (tmp_path / "b.wav").write_bytes(b"RIFF")
    assert sample_count(str(tmp_path / "b.wav"), 8000) is None


def test_a_header_that_promises_more_than_there_is_tells_what_there_is(tmp_path: pathlib.Path) -> None:
    path = pathlib.Path(recording(tmp_path / "a.wav", 1000))
    path.write_bytes(path.read_bytes()[:-400])
    assert sample_count(str(path), 16000) == 800


def test_one_long_recording_does_not_set_the_length(tmp_path: pathlib.Path) -> None:
    files = [recording(tmp_path / f"{at}.wav", count) for at, count in enumerate((900, 1000, 99999))]
    assert usual_length(files, 16000) == 1000


def test_arrays_are_no_files() -> None:
    assert not files_of(np.zeros((2, 3)))


def test_a_network_of_any_size_takes_pictures_as_they_are_where_all_agree(tmp_path: pathlib.Path) -> None:
    said: list[str] = []
    graph = parse("x = Placeholder(dtype=float, shape=[?,?,?,3])\ny = Relu(x, T=float)")
    reading = SampleReading(notify=said.append)
    picture(tmp_path / "a.png", 60, 40)
    assert reading.sized(graph, {"x": (1, 224, 224, 3)}, tmp_path) == {"x": (1, 40, 60, 3)}
    assert "fed as they are, all 60 x 40" in said[0]
    picture(tmp_path / "b.png", 64, 40)
    assert reading.sized(graph, {"x": (1, 224, 224, 3)}, tmp_path) == {"x": (1, 224, 224, 3)}
    assert "resized to 224 x 224" in said[1]
    assert SampleReading(input_width=32).sized(graph, {"x": (1, 224, 224, 3)}, tmp_path) == {"x": (1, 224, 32, 3)}


def test_pictures_get_the_size_to_which_the_graph_resizes_them(tmp_path: pathlib.Path) -> None:
    """As detectors do, which take pictures of any size: more pixels would be lost in it, fewer made up."""
    said: list[str] = []
    resizing = """
        x = Placeholder(dtype=uint8, shape=[1,?,?,3])
        wide = Cast(x, SrcT=uint8, DstT=float)
        size = Const(int32 [96, 64])
        small = ResizeBilinear(wide, size, T=float)
        y = Relu(small, T=float)
    """
    picture(tmp_path / "a.png", 60, 40)
    reading = SampleReading(notify=said.append)
    assert reading.sized(parse(resizing), {"x": (1, 224, 224, 3)}, tmp_path) == {"x": (1, 96, 64, 3)}
    assert "are resized to 64 x 96, as it does itself" in said[0]
    other = parse(resizing + "whole = Relu(wide, T=float)")
    assert reading.sized(other, {"x": (1, 224, 224, 3)}, tmp_path) == {"x": (1, 40, 60, 3)}
    means = parse(resizing.replace("ResizeBilinear", "ResizeArea"))  # of which few pixels would say little
    assert reading.sized(means, {"x": (1, 224, 224, 3)}, tmp_path) == {"x": (1, 40, 60, 3)}


@pytest.mark.parametrize(
    "how",
    ["align_corners=true", "half_pixel_centers=true", "align_corners=false"],
)
@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeNearestNeighbor"])
def test_pictures_are_resized_ahead_as_the_graph_would(op: str, how: str, tmp_path: pathlib.Path) -> None:
    """The same network with its size fixed gets, of a photo, what the open one makes of the whole photo."""
    text = f"""
        x = Placeholder(dtype=float, shape=[?,?,?,3])
        size = Const(int32 [12, 9])
        small = {op}(x, size, T=float, {how})
        y = Relu(small, T=float)
    """
    pixels = np.random.default_rng(2).integers(0, 256, (31, 44, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    graph, reading = parse(text), SampleReading(input_mean=0.0, input_std=255.0)
    assert reading.sized(graph, {"x": (1, 224, 224, 3)}, tmp_path) == {"x": (1, 12, 9, 3)}
    taken = (ModelInput("x", (1, 12, 9, 3), np.dtype(np.float32)),)
    [[ahead]] = reading.open(tmp_path, taken, reading.scaling(graph)).samples()
    fed = PictureModel(graph, ["y"], width=9, height=12, mean=0.0, std=255.0)
    [by_size] = fed.of_pixels(pixels)
    with Session(graph) as session:
        [whole] = session.run(["y"], {"x": pixels[np.newaxis] / np.float32(255)})
    for found in (ahead, by_size):
        np.testing.assert_allclose(found, whole, atol=1e-5)


def test_a_network_that_resizes_pictures_itself_is_proposed_that_size() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[SHAPE])
        size = Const(int32 [12, 9])
        small = ResizeBilinear(x, size, T=float, align_corners=true)
        y = Relu(small, T=float)
    """
    assert synthetic_shapes(parse(text.replace("SHAPE", "?,?,?,3")), ["y"]) == {"x": (1, 12, 9, 3)}
    assert synthetic_shapes(parse(text.replace("SHAPE", "2,?,40,3")), ["y"]) == {"x": (2, 12, 40, 3)}
    with pytest.raises(UsageError) as caught:
        fit(parse(text.replace("SHAPE", "?,?,?,3")))
    assert "(1, 12, 9, 3)" in caught.value.hint


def test_gray_pictures_that_get_their_channel_from_the_graph_are_several() -> None:
    text = """
        x = Placeholder(dtype=float, shape=[?,?,?])
        axis = Const(int32 AXIS)
        pictures = ExpandDims(x, axis, T=float, Tdim=int32)
        size = Const(int32 [12, 9])
        small = ResizeBilinear(pictures, size, T=float)
        y = Relu(small, T=float)
    """
    assert synthetic_shapes(parse(text.replace("AXIS", "-1")), ["y"]) == {"x": (1, 12, 9)}
    assert synthetic_shapes(parse(text.replace("AXIS", "0")), ["y"]) == {"x": (12, 9, 1)}


def test_a_network_that_halves_and_doubles_takes_pictures_of_the_nearest_size_that_fits(tmp_path: pathlib.Path) -> None:
    said: list[str] = []
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?,?,?,3])
        small = AvgPool(x, T=float, ksize=[1,4,4,1], strides=[1,4,4,1], padding="SAME")
        shape = Shape(small, T=float)
        first = Const(int32 [1])
        last = Const(int32 [3])
        sides = StridedSlice(shape, first, last, one, T=int32, Index=int32)
        one = Const(int32 [1])
        four = Const(int32 4)
        size = Mul(sides, four, T=int32)
        large = ResizeBilinear(small, size, T=float)
        y = AddV2(x, large, T=float)
    """)
    reading = SampleReading(notify=said.append)
    picture(tmp_path / "a.png", 90, 43)
    assert reading.sized(graph, {"x": (1, 224, 224, 3)}, tmp_path) == {"x": (1, 44, 88, 3)}
    assert "are resized to 88 x 44, as it does not take 90 x 43" in said[0]
    picture(tmp_path / "a.png", 92, 44)
    assert reading.sized(graph, {"x": (1, 224, 224, 3)}, tmp_path) == {"x": (1, 44, 92, 3)}
    assert "fed as they are, all 92 x 44" in said[1]


@pytest.mark.parametrize("shape", ["?", "?,?"])
def test_a_network_of_any_length_hears_recordings_in_theirs(tmp_path: pathlib.Path, shape: str) -> None:
    said: list[str] = []
    graph = parse(f"x = Placeholder(dtype=float, shape=[{shape}])\ny = Relu(x, T=float)")
    recording(tmp_path / "a.wav", 12000)
    made = (1,) * len(shape.split(","))
    assert SampleReading(notify=said.append).sized(graph, {"x": made}, tmp_path) == {"x": (*made[1:], 12000)}
    assert "to 12,000 samples" in said[0]
    assert SampleReading().sized(graph, {"x": made}, tmp_path, [(*made[1:], 700)]) == {"x": (*made[1:], 700)}


def test_series_in_an_array_tell_the_length_of_an_input_without_a_batch() -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[?])\ny = Relu(x, T=float)")
    assert SampleReading().sized(graph, {"x": (1,)}, np.zeros((5, 70), np.float32)) == {"x": (70,)}


def test_arrays_tell_the_sizes_of_an_old_placeholder_of_which_only_training_knew_how_many_there_are() -> None:
    text = "x = Placeholder(dtype=float, shape=[], _output_shapes=[[?,?,?]])\ny = Relu(x, T=float)"
    graph = Graph([*parse(text)], versions=Versions(21))
    assert SampleReading().sized(graph, {"x": (1, 1, 1)}, np.zeros((5, 3, 9), np.float32)) == {"x": (1, 3, 9)}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes among its files")
def test_pipes_and_devices_among_pictures_are_left_out(tmp_path: pathlib.Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    os.mkfifo(tmp_path / "b.png")  # opening it would wait for ever
    os.symlink("/dev/zero", tmp_path / "c.png")
    os.symlink("nowhere.png", tmp_path / "d.png")  # to be told of
    assert [os.path.basename(path) for path in files_in(str(tmp_path))] == ["a.png", "d.png"]
