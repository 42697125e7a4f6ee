"""Damaged and hostile .tflite files are told from whole ones before native code reads them."""

from __future__ import annotations

import itertools
import pathlib
import pickle
import random
import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from pocketgraph.errors import FormatError
from pocketgraph.graph import DType
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.litert.untrusted.verifier import fault, verify_file
from pocketgraph.litert.writing import flatbuffer, schema, writer

FLOAT, INT8 = DType.named("float"), DType.named("int8")


def convolution() -> bytes:
    """A file with a convolution, codes with a scale for each channel, and a reshape."""
    x, y, z = Value("x", FLOAT, (1, 8, 8, 3)), Value("y", FLOAT, (1, 4, 4, 2)), Value("z", FLOAT, (32,))
    codes = Value("codes", INT8, (2, 3, 3, 3), Constant.of(np.ones((2, 3, 3, 3), np.int8)))
    codes.quantization = Quantization((0.5, 0.25), (0, 0), 0)
    weights = Value("w", FLOAT, (2, 3, 3, 3))
    bias = Value("b", FLOAT, (2,), Constant.of(np.ones(2, np.float32)))
    options = {"padding": "SAME", "stride_w": 2, "stride_h": 2, "activation": "", "dilation_w": 1, "dilation_h": 1}
    shape = Value("shape", DType.named("int32"), (1,), Constant.of(np.array([32], np.int32)))
    operations = [
        Operation("DEQUANTIZE", [codes], [weights]),
        Operation("CONV_2D", [x, weights, bias], [y], options),
        Operation("RESHAPE", [y, shape], [z], {"new_shape": (32,)}),
    ]
    return b"".join(bytes(piece) for piece in writer.pieces(Program([x], [z], operations)))


def model(
    *,
    tensors: list[dict[str, Any]],
    operators: list[dict[str, Any]],
    inputs: tuple[int, ...] = (0,),
    outputs: tuple[int, ...] = (1,),
    code: int = 19,
    buffers: tuple[bytes, ...] = (),
    more: list[flatbuffer.Table] | None = None,
) -> bytes:
    """A file of one operator's code, its tables given by their fields."""
    subgraph: flatbuffer.Table = (
        (
            0,
            "[table]",
            [
                (
                    (0, "[i32]", each.get("shape", (4,))),
                    (1, "i8", each.get("kind", 0)),
                    (2, "u32", each.get("buffer", 0)),
                    (3, "string", "t"),
                )
                for each in tensors
            ],
        ),
        (1, "[i32]", inputs),
        (2, "[i32]", outputs),
        (
            3,
            "[table]",
            [
                (
                    (0, "u32", each.get("code", 0)),
                    (1, "[i32]", each.get("inputs", (0,))),
                    (2, "[i32]", each.get("outputs", (1,))),
                    *each.get("options", ()),
                )
                for each in operators
            ],
        ),
    )
    held: list[flatbuffer.Table] = [(), *(((0, "[u8]", data),) for data in buffers)]
    root: flatbuffer.Table = (
        (0, "u32", 3),
        (1, "[table]", [((0, "i8", min(code, 127)), (2, "i32", 1), (3, "i32", code))]),
        (2, "[table]", [subgraph, *(more or [])]),
        (4, "[table]", held),
    )
    head, _, _ = flatbuffer.layout(root, schema.IDENTIFIER)
    return head


TWO: list[dict[str, Any]] = [{}, {}]
BODY: flatbuffer.Table = ((0, "[table]", []), (1, "[i32]", ()), (2, "[i32]", ()))


def calls(number: int) -> flatbuffer.Table:
    """The options of an If whose branches are this subgraph."""
    return (3, "u8", 92), (4, "table", ((0, "i32", number), (1, "i32", number)))


def loop(number: int) -> flatbuffer.Table:
    """The options of a While whose condition and body are this subgraph."""
    return (3, "u8", 93), (4, "table", ((0, "i32", number), (1, "i32", number)))


def options(table: int, *numbers: int) -> flatbuffer.Table:
    """Options that are whole numbers."""
    return (3, "u8", table), (4, "table", tuple((slot, "i32", number) for slot, number in enumerate(numbers)))


def with_constant(
    code: int, shape: tuple[int, ...], result: tuple[int, ...], value: list[Any], how: flatbuffer.Table
) -> bytes:
    """A file of one operator whose second operand is a constant of int32."""
    constant = np.array(value, "<i4")
    tensors = [{"shape": shape}, {"shape": result}, {"shape": constant.shape, "kind": 2, "buffer": 1}]
    operators = [{"inputs": (0, 2), "options": how}]
    return model(tensors=tensors, operators=operators, code=code, buffers=(constant.tobytes(),))


def gather(
    *,
    vectors_along: int = 1,
    collapsed: tuple[int, ...] = (0,),
    started: tuple[int, ...] = (0,),
    sizes: tuple[int, ...] = (1, 4),
) -> bytes:
    """A file that takes two rows of float[3, 4] by StableHLO's gather."""
    fields = (
        (0, "[i64]", (1,)),
        (1, "[i64]", collapsed),
        (2, "[i64]", started),
        (3, "i64", vectors_along),
        (4, "[i64]", sizes),
    )
    return with_constant(201, (3, 4), (2, 4), [[0], [2]], ((11, "u8", 16), (12, "table", fields)))


def scatter(*, vectors_along: int = 1, windows: tuple[int, ...] = (1,), scattered: tuple[int, ...] = (0,)) -> bytes:
    """A file that writes two rows into float[3, 4] by StableHLO's scatter, whose body is the next subgraph."""
    fields = (
        (1, "[i64]", windows),
        (2, "[i64]", (0,)),
        (3, "[i64]", scattered),
        (4, "i64", vectors_along),
        (6, "i32", 1),
    )
    tensors = [{"shape": (3, 4)}, {"shape": (3, 4)}, {"shape": (2, 1), "kind": 2, "buffer": 1}, {"shape": (2, 4)}]
    operators = [{"inputs": (0, 2, 3), "options": ((11, "u8", 7), (12, "table", fields))}]
    indices = struct.pack("<2i", 0, 2)
    return model(tensors=tensors, operators=operators, inputs=(0, 3), code=190, buffers=(indices,), more=[BODY])


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (model(tensors=TWO, operators=[{"inputs": (7,)}]), "input 7 is no tensor"),
        (model(tensors=TWO, operators=[{"inputs": (-2,)}]), "input -2 is no tensor"),
        (model(tensors=TWO, operators=[{"outputs": (-1,)}]), "output -1 is no tensor"),
        (model(tensors=TWO, operators=[{"code": 3}]), "code 3 is none of 1"),
        (model(tensors=TWO, operators=[{}], inputs=(2,)), "input or output 2 is no tensor"),
        (model(tensors=TWO, operators=[]), "an output is never computed"),
        (model(tensors=[{}, {}, {}], operators=[{"inputs": (2,)}]), "input 2 is not computed before"),
        (model(tensors=[{}, {"shape": (-4,)}], operators=[{}]), "shape [-4]"),
        (model(tensors=[{}, {"shape": (2**30, 2**30)}], operators=[{}]), "bytes"),
        (model(tensors=[{}, {"kind": 99}], operators=[{}]), "unknown type 99"),
        (model(tensors=[{}, {"buffer": 5}], operators=[{}]), "buffer 5 of 1"),
        (model(tensors=[{"buffer": 1}, {}], operators=[{}], buffers=(b"0" * 16,)), "an input is a constant"),
        (model(tensors=[{}, {"buffer": 1}], operators=[{}], buffers=(b"0" * 16,)), "output 1 is a constant"),
        (model(tensors=[{}, {}, {"buffer": 1}], operators=[{}], buffers=(b"0" * 15,)), "16 bytes has 15"),
        (model(tensors=[{}, {}, {"kind": 5, "buffer": 1}], operators=[{}], buffers=(b"\xff" * 40,)), "4 strings"),
        (model(tensors=TWO, operators=[{}], code=3), "options are missing"),
        (
            model(
                tensors=TWO,
                operators=[{"options": ((3, "u8", 1), (4, "table", ((1, "i32", 0), (2, "i32", 1))))}],
                code=3,
            ),
            "not positive",
        ),
        (model(tensors=TWO, operators=[{"options": calls(1)}], code=118), "calls subgraph 1 of 1"),
        (model(tensors=TWO, operators=[{"options": calls(0)}], code=118), "calls itself"),
        (model(tensors=TWO, operators=[{"inputs": (-1,)}]), "operand 0 is left out"),
        (model(tensors=TWO, operators=[{"inputs": (0, -1)}], code=2), "operand 1 is left out"),
        (
            model(tensors=TWO, operators=[{"inputs": (-1,), "options": loop(1)}], code=119, more=[BODY]),
            "operand 0 is left out",
        ),
        (model(tensors=TWO, operators=[{}], code=65), "1 operands and 1 results, not 3 and 1"),
        (model(tensors=TWO, operators=[{"outputs": ()}], outputs=(0,), code=143), "1 operands and 0 results"),
        (model(tensors=TWO, operators=[{"options": options(35, 3)}], code=49), "3 parts and has 1 results"),
        (model(tensors=TWO, operators=[{"options": options(22)}], code=49), "another operator's"),
        (model(tensors=TWO, operators=[{"options": options(13, -1)}], code=13), "over -1 channels"),
        (with_constant(112, (2, 3), (2, 3), [1, 4], options(87, 1, 0)), "beyond the 3 steps"),
        (with_constant(112, (2, 3), (2, 3), [1, -1], options(87, 1, 0)), "beyond the 3 steps"),
        (with_constant(34, (2,), (4,), [[2**31 - 1, -1]], ()), "it pads [2] by [2147483647, -1]"),
        (with_constant(60, (1024, 4096), (1, 1), [[2**31 - 1] * 2] * 2, ()), "it pads [1024, 4096]"),
        (with_constant(23, (1, 0, 4, 2), (1, 8, 6, 2), [8, 6], ()), "without pixels"),
        (with_constant(97, (1, 4, 0, 2), (1, 8, 6, 2), [8, 6], ()), "without pixels"),
        (with_constant(115, (2, 3, 3), (2, 3, 3), [[1, 2]], ()), "diagonals [1, 2] in matrices [2, 3, 3]"),
        (with_constant(156, (2, 3), (2, 3), [1, 2, 3], ()), "differ in their shapes"),
        (
            model(
                tensors=[
                    {"shape": (2,), "kind": 2, "buffer": 1},
                    {"shape": (2,), "kind": 2},
                    {"shape": (2,), "kind": 2, "buffer": 2},
                ],
                operators=[{"inputs": (0, 2)}],
                inputs=(),
                code=145,
                buffers=(struct.pack("<2i", 2, 3), struct.pack("<2i", 7, 3)),
            ),
            "the shapes [2, 3] and [7, 3] do not fit together",
        ),
        (with_constant(207, (3,), (3,), [1], ()), "differ in their shapes"),
        (with_constant(203, (2, 3), (3, 5), [2, 0], ()), "it dilates [2, 3] by [2, 0]"),
        (with_constant(203, (2, 3), (3, 5), [2**31 - 1] * 2, ()), "it dilates [2, 3] by"),
        (gather(vectors_along=2), "axes do not fit"),
        (gather(vectors_along=-1), "axes do not fit"),
        (gather(collapsed=(5,)), "axes do not fit"),
        (gather(sizes=(1, 5)), "axes do not fit"),
        (gather(started=(2,)), "axes do not fit"),
        (scatter(windows=(2**40,)), "axes do not fit"),
        (scatter(vectors_along=2), "axes do not fit"),
        (scatter(scattered=(0, 1)), "axes do not fit"),
        (b"\x1c\0\0\0TFL3" + b"\xff" * 64, "layout"),
        (b"\0" * 64, "does not begin"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, part: str) -> None:
    assert part in fault(data)


def test_a_tensor_whose_name_does_not_end_is_found() -> None:
    data = model(tensors=TWO, operators=[{}])
    at = data.index(b"\x01\0\0\0t\0")
    assert "does not end" in fault(data[: at + 5] + b"x" + data[at + 6 :])


def test_what_is_right_passes() -> None:
    assert not fault(convolution())
    assert not fault(model(tensors=TWO, operators=[{}]))
    assert not fault(model(tensors=TWO, operators=[{"options": calls(1)}], code=118, more=[BODY]))


def test_what_may_be_left_out_and_sizes_at_the_edge_pass() -> None:
    how = (3, "u8", 1), (4, "table", ((1, "i32", 1), (2, "i32", 1)))
    pictures = [{"shape": (1, 4, 4, 3)}, {"shape": (1, 4, 4, 2)}, {"shape": (2, 1, 1, 3), "buffer": 1}]
    operators = [{"inputs": (0, 2, -1), "options": how}]
    assert not fault(model(tensors=pictures, operators=operators, code=3, buffers=(bytes(24),)))
    assert not fault(with_constant(112, (2, 3), (2, 3), [0, 3], options(87, 1, 0)))
    assert not fault(with_constant(34, (0,), (4,), [[3, 1]], ()))
    assert not fault(with_constant(115, (2, 3, 4), (2, 3, 4), [[1, 2, 3]] * 2, ()))
    assert not fault(with_constant(156, (3,), (3,), [1, 2, 3], ()))
    assert not fault(with_constant(203, (2, 3), (3, 5), [2, 2], ()))
    assert not fault(gather())
    assert not fault(scatter())


RUN = """
import pickle, sys
from ai_edge_litert.interpreter import Interpreter
for name, data in pickle.load(sys.stdin.buffer):
    print(name, flush=True)
    try:
        interpreter = Interpreter(model_content=data, num_threads=1)
        interpreter.allocate_tensors()
        interpreter.invoke()
    except (RuntimeError, ValueError):
        pass
print("end")
"""


def test_operands_that_are_missing_never_end_the_process() -> None:
    """Each operator of LiteRT with too few operands and results, and with one left out: refused here, or by LiteRT."""
    files, refused = [], 0
    for code in range(210):
        for count, results in itertools.product(range(4), range(3)):
            for absent in range(-1, count):
                inputs = tuple(-1 if place == absent else 0 for place in range(count))
                tensors = [{"shape": (2, 3)}] * 3
                how = (1, 2)[:results]
                data = model(
                    tensors=tensors, operators=[{"inputs": inputs, "outputs": how}], outputs=how or (0,), code=code
                )
                refused += (is_refused := bool(fault(data)))
                if not is_refused:
                    files.append((f"operator {code}, {inputs}, {results} results", data))
    assert refused > 2000
    assert len(files) > 1000
    ran = subprocess.run([sys.executable, "-c", RUN], input=pickle.dumps(files), capture_output=True, check=False)
    assert ran.stdout.decode().splitlines()[-1:] == ["end"], ran.stderr.decode()[-500:]


def test_every_cut_is_found(tmp_path: pathlib.Path) -> None:
    data = convolution()
    for length in range(0, len(data) - 1, 7):
        path = tmp_path / "cut.tflite"
        path.write_bytes(data[:length])
        with pytest.raises(FormatError, match=r"cut\.tflite"):
            verify_file(path)


def test_any_change_is_refused_or_readable() -> None:
    """Offsets, counts and indices of any value lead to no other error than a finding."""
    data, draw = convolution(), random.Random(5)
    refused = 0
    for _ in range(4000):
        changed = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 5))):
            at = draw.randrange(len(changed) // 4) * 4
            number = draw.choice((0, 1, 2**31, 2**32 - 1, 2**31 - 1, draw.randrange(2**32), draw.randrange(len(data))))
            struct.pack_into("<I", changed, at, number)
        refused += bool(fault(bytes(changed)))
    assert refused > 400


def test_vectors_that_overlap_do_not_take_forever() -> None:
    many = 1500
    tables = [{"inputs": tuple([0] * 100)}] * many
    data = bytearray(model(tensors=TWO, operators=tables))
    assert not fault(bytes(data))
    # Every operator is the first one, whose inputs are said to be as many as fit.
    first = data.index(struct.pack("<I", 100) + bytes(400))
    struct.pack_into("<I", data, first, (len(data) - first) // 4 - 1)
    place = data.index(struct.pack("<I", many)) + 4
    target = place + struct.unpack_from("<I", data, place)[0]
    for index in range(many):
        struct.pack_into("<I", data, place + 4 * index, target - place - 4 * index)
    assert fault(bytes(data))
