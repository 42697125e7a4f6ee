"""One text alone stays a text: NumPy would make an array of bytes of it, which loses zeros at its end."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import RunError
from pocketgraph.graph import DType, Node, Shape
from pocketgraph.kernels import evaluate
from pocketgraph.kernels.registry import Context

TEXTS = np.array([b"ab\x00", b"", b"c"], object)
STRING, INT = DType.named("string"), DType.named("int32")


def text(value: Any) -> tuple[Any, ...]:
    assert isinstance(value, np.ndarray)
    return value.dtype, value.shape, value.item()


def test_a_text_out_of_a_list() -> None:
    scalar = np.zeros(0, np.int32)
    made = Node("l", "TensorListFromTensor", (), {"element_dtype": STRING, "shape_type": INT})
    (held,) = evaluate(made, (TEXTS, scalar))
    (item,) = evaluate(Node("g", "TensorListGetItem", (), {"element_dtype": STRING}), (held, np.int32(0), scalar))
    assert text(item) == (object, (), b"ab\x00")


def test_a_text_out_of_a_tensor_array() -> None:
    attrs = {"dtype": STRING, "element_shape": Shape(None)}
    made = Node("a", "TensorArrayV3", (), attrs)
    context = Context(made)
    handle, flow = evaluate(made, (np.int32(3),), context)
    scattered = Node("s", "TensorArrayScatterV3", (), {"T": STRING})
    (flow,) = evaluate(scattered, (handle, np.arange(3, dtype=np.int32), TEXTS, flow), context)
    (item,) = evaluate(Node("r", "TensorArrayReadV3", (), {"dtype": STRING}), (handle, np.int32(0), flow), context)
    assert text(item) == (object, (), b"ab\x00")


@pytest.mark.parametrize("op", ["FIFOQueueV2", "PaddingFIFOQueueV2"])
def test_texts_that_are_queued_one_by_one(op: str) -> None:
    made = Node("q", op, (), {"component_types": (STRING,), "shapes": (Shape(()),), "capacity": 5})
    context = Context(made)
    (queue,) = evaluate(made, (), context)
    evaluate(Node("e", "QueueEnqueueManyV2", (), {"Tcomponents": (STRING,)}), (queue, TEXTS), context)
    (item,) = evaluate(Node("d", "QueueDequeueV2", (), {"component_types": (STRING,)}), (queue,), context)
    assert text(item) == (object, (), b"ab\x00")


def test_a_place_that_was_not_set_is_an_empty_text() -> None:
    made = Node("l", "TensorListScatterV2", (), {"element_dtype": STRING, "shape_type": INT})
    (held,) = evaluate(made, (TEXTS[:1], np.int32([1]), np.zeros(0, np.int32), np.int32(2)))
    stack = Node("s", "TensorListStack", (), {"element_dtype": STRING})
    assert evaluate(stack, (held, np.zeros(0, np.int32)))[0].tolist() == [b"", b"ab\x00"]
    assert evaluate(Node("e", "Empty", (), {"dtype": STRING}), (np.int32([2]),))[0].tolist() == [b"", b""]


def run(op: str, *inputs: Any, **attrs: Any) -> tuple[Any, ...]:
    arrays = [np.array(value, object if isinstance(value, bytes | list) else np.int32) for value in inputs]
    return evaluate(Node("n", op, (), attrs), arrays)


@pytest.mark.parametrize(
    ("text", "count"),
    [(b"\xa9\x0b-\xc3\xc3\xa9", 4), (b"\xff\xa9", 1), (b"\xc3\xa9\xe2\x82", 2), (b"", 0), (b"\xe2\x82\xac", 1)],
)
def test_characters_are_counted_in_any_bytes(text: bytes, count: int) -> None:
    """As TensorFlow 2.21 counts them."""
    assert run("StringLength", text, unit=b"UTF8_CHAR")[0] == count


@pytest.mark.parametrize(
    ("text", "pos", "size", "characters", "plain"),
    [
        (b"\xc3b\xc3\n\xa9", 2, 2, b"\xc3\n\xa9", b"\xc3\n"),
        (b",\xa9\xc3 \xa91", -3, 3, b"\xc3 \xa91", b" \xa91"),
        (b".\xa9,", 1, 1, b",", b"\xa9"),
        (b"a\xc3\xa9b", 1, 1, b"\xc3\xa9", b"\xc3"),
        (b"a\xc3\xa9b", -2, 9, b"\xc3\xa9b", b"\xa9b"),
        (b"abc", 1, -1, b"", b"bc"),
        (b"abc", -1, -1, None, b"c"),
        (b"abc", 3, 1, b"", b""),
        (b"abc", 4, 1, None, None),
        (b"\xa9b", -2, 1, b"\xa9", b"\xa9"),
        (b"\xa9\xa9b", 0, 1, b"\xa9\xa9", b"\xa9"),
    ],
)
def test_parts_of_texts(text: bytes, pos: int, size: int, characters: bytes | None, plain: bytes | None) -> None:
    """As TensorFlow 2.21 cuts them, None where it refuses to."""
    for unit, expected in ((b"UTF8_CHAR", characters), (b"BYTE", plain)):
        if expected is None:
            with pytest.raises(RunError, match="out of range"):
                run("Substr", text, pos, size, unit=unit)
        else:
            assert run("Substr", text, pos, size, unit=unit)[0].item() == expected


@pytest.mark.parametrize(
    ("text", "most", "blanks", "spaces"),
    [
        (b" a  b c ", 0, [b" a  b c "], [b" a  b c "]),
        (b" a  b c ", 1, [b"a", b"b c "], [b"", b"a  b c "]),
        (b" a  b c ", 2, [b"a", b"b", b"c "], [b"", b"a", b" b c "]),
        (b"1", 1, [b"1", b""], [b"1"]),
        (b"1", 2, [b"1"], [b"1"]),
        (b"", 0, [b""], [b""]),
        (b"", 1, [], [b""]),
        (b" ", 0, [b" "], [b" "]),
        (b"a ", 1, [b"a", b""], [b"a", b""]),
        (b"a\x0bb", -2, [b"a", b"b"], [b"a\x0bb"]),
    ],
)
def test_texts_are_cut_a_number_of_times(text: bytes, most: int, blanks: list[bytes], spaces: list[bytes]) -> None:
    """As TensorFlow 2.21 cuts them."""
    assert run("StringSplitV2", [text], b"", maxsplit=most)[1].tolist() == blanks
    assert run("StringSplitV2", [text], b" ", maxsplit=most)[1].tolist() == spaces


@pytest.mark.parametrize("text", [b"YQ=", b"YQ===", b"+/8", b"Y", b"YWJj=", b"YWJj====", b"=", b"===="])
def test_what_is_no_web_safe_base64(text: bytes) -> None:
    with pytest.raises(RunError):
        run("DecodeBase64", text)


def test_web_safe_base64() -> None:
    for text, expected in ((b"YQ==", b"a"), (b"YQ", b"a"), (b"-_8", b"\xfb\xff"), (b"YWI=", b"ab"), (b"", b"")):
        assert run("DecodeBase64", text)[0].item() == expected


def test_no_zeros_stand_before_what_is_not_finite() -> None:
    """As TensorFlow 2.21 writes them."""
    attrs = {"width": 7, "fill": b"0"}
    values = np.array([np.nan, -np.inf, np.inf, -1.5], np.float32)
    found = evaluate(Node("n", "AsString", (), attrs), [values])[0].tolist()
    assert found == [b"    nan", b"   -inf", b"    inf", b"-1.500000"]
    pair = np.array([complex(np.nan, 1)], np.complex64)
    assert evaluate(Node("n", "AsString", (), attrs), [pair])[0].tolist() == [b"(    nan,1.000000)"]


def test_numbers_are_written_in_one_notation() -> None:
    for dtype, attrs in ((np.float32, {"scientific": True, "shortest": True}), (bool, {"scientific": True})):
        with pytest.raises(RunError):
            evaluate(Node("n", "AsString", (), attrs), [np.ones(2, dtype)])


def decoded(encoding: bytes, *texts: bytes) -> tuple[list[int], list[int], list[int]]:
    """(row splits, code points, places) of texts."""
    attrs = {"input_encoding": encoding, "replacement_char": 63}
    found = evaluate(Node("node", "UnicodeDecodeWithOffsets", (), attrs), [np.array(texts, object)])
    splits, codes, places = (part.tolist() for part in found)
    return splits, codes, places


def test_texts_of_two_bytes_a_character_are_big_endian_without_a_mark() -> None:
    assert decoded(b"UTF-16", b"\0a\0b", b"a\0b\0") == ([0, 2, 4], [97, 98, 24832, 25088], [0, 2, 0, 2])
    assert decoded(b"UTF-32", b"\0\0\0a", b"a\0\0\0") == ([0, 1, 2], [97, 63], [0, 0])


def test_the_first_mark_of_utf_16_tells_the_order_of_all_texts() -> None:
    texts = (b"\xff\xfea\0b\0", b"\xfe\xff\0a\0b", b"a\0b\0", b"", b"\xff\xfe", b"\xff\xfe\x3d\xd8\0\xdea\0", b"\0a\0")
    splits, codes, places = decoded(b"UTF-16", *texts)
    assert splits == [0, 2, 5, 7, 7, 8, 11, 13]
    assert codes == [97, 98, 65534, 24832, 25088, 97, 98, 65279, 65279, 128512, 97, 24832, 63]
    assert places == [0, 4, 0, 2, 4, 0, 2, 0, 0, 2, 6, 0, 2]
    assert decoded(b"UTF-32", b"\xff\xfe\0\0a\0\0\0", b"\0\0\xfe\xff\0\0\0a") == ([0, 1, 2], [97, 97], [0, 0])


def test_bytes_that_a_windows_code_page_leaves_open_are_control_characters() -> None:
    assert decoded(b"windows-1252", b"\x80\x81\x9d!") == ([0, 4], [0x20AC, 0x81, 0x9D, 33], [0, 1, 2, 3])
    assert decoded(b"windows-1253", b"\x88\xd2") == ([0, 2], [0x88, 63], [0, 1])


@pytest.mark.parametrize(
    ("kind", "text", "plain"),
    [
        ("ZLIB", zlib.compress(b""), b""),
        ("GZIP", gzip.compress(b"", mtime=0), b""),
        ("ZLIB", b"", b""),
        ("GZIP", gzip.compress(b"one ", mtime=0) + gzip.compress(b"two", mtime=0), b"one two"),
        ("GZIP", gzip.compress(b"one", mtime=0) + bytes(9), b"one"),
        ("ZLIB", zlib.compress(b"one") + b"more", b"one"),
        ("ZLIB", zlib.compress(bytes(3 << 20)), bytes(3 << 20)),
    ],
)
def test_texts_are_unpacked_to_their_end(kind: str, text: bytes, plain: bytes) -> None:
    node = Node("node", "DecodeCompressed", (), {"compression_type": kind})
    assert evaluate(node, [np.array([text], object)])[0].tolist() == [plain]


@pytest.mark.parametrize("text", [zlib.compress(b"one two three")[:-1], zlib.compress(b"one two three")[:9], b"x\x9c"])
def test_texts_that_are_cut_short_are_refused(text: bytes) -> None:
    node = Node("node", "DecodeCompressed", (), {"compression_type": "ZLIB"})
    with pytest.raises(RunError, match="cut short"):
        evaluate(node, [np.array([text], object)])


def test_letters_of_utf_8_end_at_a_zero_byte() -> None:
    """TensorFlow 2.21 hands C's texts on, and puts U+FFFD for what is no UTF-8."""
    given = np.array([b"Z\xffz\x00x", b"\xff\x00x", b"\x00A", b"\xc3\x84b"], object)
    for op, expected in (("StringLower", [b"z\xef\xbf\xbdz", b"\xef\xbf\xbd", b"", b"\xc3\xa4b"]),
                         ("StringUpper", [b"Z\xef\xbf\xbdZ", b"\xef\xbf\xbd", b"", b"\xc3\x84B"])):  # fmt: skip
        assert evaluate(Node("n", op, ("x",), {"encoding": b"utf-8"}), [given])[0].tolist() == expected


@pytest.mark.parametrize(("most", "shown"), [(-2, b"1"), (-1, b"1"), (0, b"..."), (1, b"1")])
def test_of_a_scalar_nothing_is_shown_where_no_element_may_be(most: int, shown: bytes) -> None:
    """As StringFormat of TensorFlow 2.21 shows the int32 1."""
    node = Node("y", "StringFormat", ("x",), {"template": b"a {} b", "placeholder": b"{}", "summarize": most})
    assert evaluate(node, [np.array(1, np.int32)])[0].item() == b"a " + shown + b" b"
