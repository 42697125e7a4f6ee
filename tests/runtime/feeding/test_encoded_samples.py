"""Made-up files: for what decodes them, also one after the other in a loop, or in a function."""

import pathlib

import numpy as np
import pytest
from PIL import Image

from command_line import call
from function_text import with_functions
from pocketgraph import benchmark, evaluate, label_image, quantize, save
from pocketgraph.errors import FormatError, PocketgraphError
from pocketgraph.graph import Func, Graph, Node
from pocketgraph.graph.dtype import STRING, UINT8
from pocketgraph.graph.entry_points import likely_outputs, other_ends
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.feeding.encoded_samples import decoder_of, file_form
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds

LOOP = """
    files = Placeholder(dtype=string, shape=[?])
    zero = Const(int32 0)
    start = Const(float 0.0)
    enter_i = Enter(zero, T=int32, frame_name="loop")
    enter_a = Enter(start, T=float, frame_name="loop")
    all = Enter(files, T=string, frame_name="loop", is_constant=true)
    i = Merge(enter_i, next_i, T=int32, N=2)
    a = Merge(enter_a, next_a, T=float, N=2)
    limit = Const(int32 1, ^i)
    less = Less(i, limit, T=int32)
    more = LoopCond(less)
    switch_i = Switch(i, more, T=int32)
    switch_a = Switch(a, more, T=float)
    own_i = Identity(switch_i:1, T=int32)
    own_a = Identity(switch_a:1, T=float)
    file = Gather(all, own_i, Tindices=int32, Tparams=string)
    pixels = DecodeJpeg(file, channels=3)
    plain = Cast(pixels, SrcT=uint8, DstT=float)
    axes = Const(int32 [0, 1, 2], ^own_i)
    mean = Mean(plain, axes, T=float, Tidx=int32)
    least = Const(float 0.5, ^own_i)
    bright = Greater(mean, least, T=float)
    words = Const(string "too dark", ^own_i)
    check = Assert(bright, words, T=[string])
    held = Identity(mean, ^check, T=float)
    left_over = Neg(held, T=float)
    sum = AddV2(own_a, held, T=float)
    one = Const(int32 1, ^own_i)
    up = AddV2(own_i, one, T=int32)
    next_i = NextIteration(up, T=int32)
    next_a = NextIteration(sum, T=float)
    leave = Exit(switch_a, T=float)
    y = Relu(leave, T=float)
"""


def test_a_list_of_files_is_made_up_where_a_loop_decodes_them() -> None:
    graph = parse(LOOP)
    decoder = decoder_of(graph, "files")
    assert decoder is graph["pixels"]
    feeds = synthetic_feeds(graph, ["y"])
    assert feeds["files"].shape == (1,)
    with Session(graph) as session:
        [y] = session.run(["y"], feeds)
    assert 100 < y < 155  # the mean of random bytes
    assert benchmark(graph, outputs=["y"], max_runs=1)


def test_of_several_decoders_one_that_reads_jpeg_is_taken() -> None:
    graph = parse("""
        file = Placeholder(dtype=string, shape=[])
        png = DecodePng(file, channels=3)
        jpeg = DecodeJpeg(file, channels=3)
    """)
    found = decoder_of(graph, "file")
    assert found is graph["jpeg"]


def test_a_function_that_decodes_is_seen() -> None:
    call_of_it = Node("y", "PartitionedCall", ["file"], {"Tin": (STRING,), "Tout": (UINT8,), "f": Func("decode")})
    graph = with_functions(
        Graph([*parse("file = Placeholder(dtype=string, shape=[])"), call_of_it]),
        ["decode(f: string) -> pixels: uint8 = png:image:0", "png = DecodePng(f, channels=3)"],
    )
    found = decoder_of(graph, "file")
    assert found is not None
    assert found.op == "DecodePng"


@pytest.mark.parametrize(
    "reader", ["text = ReadFile(file)\n y = DecodeJpeg(text, channels=3)", "y = StringLength(file)"]
)
def test_what_is_no_file_itself_is_none(reader: str) -> None:
    assert decoder_of(parse(f"file = Placeholder(dtype=string, shape=[])\n{reader}"), "file") is None


def test_ends_inside_a_loop_are_no_outputs() -> None:
    graph = parse(LOOP)
    assert [name for name, _ in likely_outputs(graph)] == ["y"]
    assert other_ends(graph, ["y"]) == []


def test_an_assertion_in_a_loop_does_not_hide_what_a_target_lacks(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(parse(LOOP), tmp_path / "loop.pb")
    assert call("check", tmp_path / "loop.pb") == 1
    said = capsys.readouterr().out
    assert "DecodeJpeg has no LiteRT lowering; reading picture files is the app's: `pocketgraph ship " in said
    assert "different frames" not in said


def test_a_picture_goes_as_its_file_into_a_graph_that_decodes_files_in_a_loop(tmp_path: pathlib.Path) -> None:
    """Its mean, of equal pixels without loss, whatever the form of the file is and whoever feeds it."""
    graph = parse(LOOP + "    size = Const(int32[1] [1])\n    scores = Reshape(y, size, T=float, Tshape=int32)\n")
    pixels = np.full((5, 7, 3), 153, np.uint8)
    (tmp_path / "photos").mkdir()
    for name in ("photo.png", "photo.webp", "photo.bmp"):
        Image.fromarray(pixels).save(tmp_path / "photos" / name, **({"lossless": True} if "webp" in name else {}))
    for found in label_image(graph, [tmp_path / "photos", pixels]):
        assert [one.score for one in found.predictions] == [153.0]
    with Session(graph) as session:
        (wanted,) = session.run(["y"], {"files": np.array([(tmp_path / "photos" / "photo.png").read_bytes()], object)})
    assert wanted == 153
    found = evaluate([graph, graph], tmp_path / "photos")
    assert found.samples == 3
    assert found[1].comparison is not None
    assert found[1].comparison.largest == 0


def test_a_broken_file_for_a_graph_that_decodes_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut off")
    with pytest.raises(FormatError, match=r"photo\.jpg"):
        label_image(parse(LOOP), tmp_path / "photo.jpg")


def test_what_quantizes_says_that_pictures_are_decoded_not_texts(tmp_path: pathlib.Path) -> None:
    (tmp_path / "photos").mkdir()
    for at in range(3):
        Image.fromarray(np.full((5, 7, 3), 40 * at, np.uint8)).save(tmp_path / "photos" / f"{at}.png")
    with pytest.raises(PocketgraphError) as refused:
        quantize(parse(LOOP), tmp_path / "photos")
    assert "ship cuts the model behind it" in str(refused.value)


BASE64 = """
    files = Placeholder(dtype=string, shape=[1])
    first = Const(int32[1] [0])
    last = Const(int32[1] [1])
    one = Const(int32[1] [1])
    file = StridedSlice(files, first, last, one, T=string, Index=int32, shrink_axis_mask=1)
    content = DecodeBase64(file)
    pixels = DecodePng(content, channels=3)
    plain = Cast(pixels, SrcT=uint8, DstT=float)
    axes = Const(int32[2] [0, 1])
    scores = Mean(plain, axes, T=float, Tidx=int32)
"""


def test_files_in_base64_are_made_up_and_fed_as_such(tmp_path: pathlib.Path) -> None:
    """As services on the web take pictures, in letters that may stand in an address."""
    graph = parse(BASE64)
    decoder = decoder_of(graph, "files")
    assert decoder is graph["pixels"]
    assert file_form(graph, "files") == "PNG in base64"
    with Session(graph) as session:
        (scores,) = session.run(["scores"], synthetic_feeds(graph, ["scores"]))
    assert np.all((scores > 100) & (scores < 155))
    assert benchmark(graph, outputs=["scores"], max_runs=1)
    pixels = np.full((5, 7, 3), (10, 20, 251), np.uint8)
    (tmp_path / "photos").mkdir()
    Image.fromarray(pixels).save(tmp_path / "photos" / "photo.png")
    for found in label_image(graph, [tmp_path / "photos", pixels]):
        assert sorted(one.score for one in found.predictions) == [10.0, 20.0, 251.0]
    found = evaluate([graph, graph], tmp_path / "photos")
    assert found[1].comparison is not None
    assert found[1].comparison.largest == 0
