"""The files that are written, read back by other programs: the flatbuffers package and LiteRT."""

from __future__ import annotations

import io
import pathlib
import struct

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import FormatError
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.constant import Constant
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.litert.running.runner import PlainRunner
from pocketgraph.litert.writing import flatbuffer, schema, writer

random = np.random.default_rng(3)


def model(count: int = 3) -> tuple[Program, list[np.ndarray]]:
    """y = x + a + b + … and the vectors."""
    vectors = [random.random((2, 5 + 0 * i), np.float32) for i in range(count)]
    x = Value("x:0", FLOAT, (2, 5))
    operations, last = [], x
    for number, vector in enumerate(vectors):
        result = Value(f"sum{number}", FLOAT, (2, 5))
        operand = Value(f"v{number}", FLOAT, (2, 5), Constant.of(vector))
        operations.append(Operation("ADD", [last, operand], [result], {"activation": ""}))
        last = result
    return Program([x], [last], operations), vectors


def written(program: Program) -> bytes:
    file = io.BytesIO()
    for piece in writer.pieces(program):
        file.write(piece)
    return file.getvalue()


@pytest.mark.parametrize("outside", [False, True])
def test_litert_runs_what_is_written(outside: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    if outside:
        monkeypatch.setattr(writer, "LIMIT", 0)
    program, vectors = model()
    data = written(program)
    for vector in vectors:
        assert data.index(vector.tobytes()) % flatbuffer.Blob(vector.nbytes).alignment == 0
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    x = random.random((2, 5), np.float32)
    (result,) = PlainRunner(str(path), 1).run([x])
    np.testing.assert_allclose(result, x + sum(vectors), rtol=1e-6)


def test_the_structure_is_what_the_schema_says() -> None:
    data = written(model(1)[0])
    assert data[4:8] == schema.IDENTIFIER
    from ai_edge_litert import schema_py_generated as official

    read = official.ModelT.InitFromPackedBuf(data, 0)
    assert read.version == schema.VERSION
    (graph,) = read.subgraphs
    assert [tensor.name for tensor in graph.tensors] == [b"x:0", b"v0", b"sum0"]
    assert [tensor.shape.tolist() for tensor in graph.tensors] == [[2, 5]] * 3
    assert graph.inputs.tolist() == [0]
    assert graph.outputs.tolist() == [2]
    (operator,) = graph.operators
    assert operator.inputs.tolist() == [0, 1]
    assert read.operatorCodes[operator.opcodeIndex].builtinCode == official.BuiltinOperator.ADD
    assert operator.builtinOptionsType == official.BuiltinOptions.AddOptions
    assert len(read.buffers) == 2


def test_numbers_are_those_of_the_official_schema() -> None:
    from ai_edge_litert import schema_py_generated as official

    for name, operator in schema.OPERATORS.items():
        assert getattr(official.BuiltinOperator, name) == operator.number
    for name, options in ((name, schema.option_fields(name)) for name in schema.OPTIONS):
        assert getattr(official.BuiltinOptions, f"{name}Options") == options.number
    for name, number in schema.TENSOR_TYPES.items():
        spelled = {"float": "FLOAT32", "half": "FLOAT16", "double": "FLOAT64"}.get(name, name.upper())
        assert getattr(official.TensorType, spelled) == number
    assert {operator.options for operator in schema.OPERATORS.values()} - {""} <= set(schema.OPTIONS)


@pytest.mark.parametrize("name", sorted(schema.OPTIONS))
def test_options_are_written_where_the_official_reader_looks(name: str) -> None:
    """Every field of every option table, set to a value of its own and read back by the generated classes."""
    from ai_edge_litert import schema_py_generated as official

    options = schema.option_fields(name)
    chosen = {key: _sample(field.kind, number) for number, (key, field) in enumerate(options.by_name.items(), 1)}
    table = [(options.by_name[key].slot, options.by_name[key].kind, value) for key, value in chosen.items()]
    data, _, _ = flatbuffer.layout(table, b"TEST")
    read = getattr(official, f"{name}OptionsT").InitFromPackedBuf(data, 0)
    found = [tuple(v.tolist()) if isinstance(v, np.ndarray) else v for v in vars(read).values()]
    for value in chosen.values():
        assert (value.encode() if isinstance(value, str) else value) in found


def _sample(kind: str, number: int) -> object:
    if kind == "bool":
        return True
    if kind == "f32":
        return number + 0.5
    if kind == "string":
        return f"text {number}"
    return (number, number + 1) if kind.startswith("[") else number


def test_every_kind_of_field_is_aligned() -> None:
    tables = [
        ((0, "i8", -1), (1, "u64", 2**40), (2, "string", "a"), (3, "[i64]", (1, -2)), (4, "bool", True)),
        ((0, "i16", -3), (5, "f32", 0.5)),
        (),
    ]
    data, blobs, size = flatbuffer.layout(((1, "[table]", tables), (3, "blob", flatbuffer.Blob(5))), b"TEST")
    assert len(blobs) == 1
    assert blobs[0].position % 16 == 0
    assert size == blobs[0].position + 5
    (root,) = struct.unpack_from("<I", data)
    from flatbuffers import number_types, table

    reader = table.Table(data, root)
    vector = reader.Vector(reader.Offset(4 + 2 * 1))
    first = table.Table(data, reader.Indirect(vector))
    assert first.Get(number_types.Int8Flags, first.Pos + first.Offset(4)) == -1
    at = first.Pos + first.Offset(6)
    assert at % 8 == 0
    assert first.Get(number_types.Uint64Flags, at) == 2**40
    assert first.String(first.Pos + first.Offset(8)) == b"a"
    numbers = first.Vector(first.Offset(10))
    assert numbers % 8 == 0
    assert struct.unpack_from("<2q", data, numbers) == (1, -2)


@pytest.mark.parametrize(("size", "alignment"), [(0, 16), (1023, 16), (1024, 64), (5000, 64)])
def test_large_constants_begin_with_a_line_of_the_cache(size: int, alignment: int) -> None:
    blobs = [flatbuffer.Blob(7), flatbuffer.Blob(size)]
    flatbuffer.layout(((1, "[table]", [((0, "blob", blob),) for blob in blobs]),), b"TEST")
    assert blobs[1].alignment == alignment
    assert blobs[1].position % alignment == 0
    assert blobs[0].position + 7 <= blobs[1].position - 4


def test_what_is_alike_is_written_once() -> None:
    from flatbuffers import table

    codes = (2, "=[f32]", (0.25,)), (3, "=[i64]", (7,))
    others = (2, "=[f32]", (0.5,)), (3, "=[i64]", (7,))
    tensors = [((0, "i8", number), (4, "=table", alike)) for number, alike in enumerate([codes, others, codes])]
    data, _, _ = flatbuffer.layout(((1, "[table]", tensors),), b"TEST")
    (root,) = struct.unpack_from("<I", data)
    reader = table.Table(data, root)
    vector = reader.Vector(reader.Offset(6))
    read = [table.Table(data, reader.Indirect(vector + 4 * number)) for number in range(3)]
    quantized = [one.Indirect(one.Pos + one.Offset(12)) for one in read]
    assert quantized[0] == quantized[2] != quantized[1]
    assert data.count(struct.pack("<q", 7)) == 1
    layouts = {one.Pos - struct.unpack_from("<i", data, one.Pos)[0] for one in read}
    assert len(layouts) == 1


@pytest.mark.parametrize("shape", [(3, 3, 5, 70), (1, 1, 130, 33), (40, 64), (7,), (2, 0, 3)])
@pytest.mark.parametrize("scaled", [False, True])
def test_constants_are_permuted_and_scaled(shape: tuple[int, ...], scaled: bool) -> None:
    values = random.random(shape, np.float32)
    order = (len(shape) - 1, *range(len(shape) - 1))
    constant = Constant.of(values).permuted(order)
    expected = values.transpose(order)
    if scaled:
        scale = random.random((constant.shape[0], *[1] * (len(shape) - 1)), np.float32)
        constant, expected = constant.scaled(scale), expected * scale
    assert constant.shape == expected.shape
    np.testing.assert_array_equal(constant.numpy(), expected)
    np.testing.assert_array_equal(
        constant.reshaped((-1,)).numpy() if 0 in shape else constant.numpy(),
        expected.reshape(constant.shape if 0 not in shape else -1),
    )


def test_what_may_be_shared_lies_in_the_file_once() -> None:
    from flatbuffers import table

    shape, options = (3, 5, 7), ((0, "i8", 1), (1, "[i32]", (9, 8)))
    tables = [((0, "=[i32]", shape), (1, "=table", options), (2, "string", str(index))) for index in range(3)]
    apart = [((0, "[i32]", shape), (1, "table", options), (2, "string", str(index))) for index in range(3)]
    data, _, _ = flatbuffer.layout(((0, "[table]", tables),), b"TEST")
    assert data.count(struct.pack("<4I", 3, *shape)) == 1
    assert data.count(struct.pack("<3I", 2, 9, 8)) == 1
    assert len(data) < len(flatbuffer.layout(((0, "[table]", apart),), b"TEST")[0])
    (root,) = struct.unpack_from("<I", data)
    reader = table.Table(data, root)
    start = reader.Vector(reader.Offset(4))
    for index in range(3):
        each = table.Table(data, reader.Indirect(start + 4 * index))
        at = each.Vector(each.Offset(4))
        assert struct.unpack_from("<3i", data, at) == shape
        inner = table.Table(data, each.Indirect(each.Pos + each.Offset(6)))
        assert struct.unpack_from("<2i", data, inner.Vector(inner.Offset(6))) == (9, 8)


def test_numbers_of_too_many_bits_are_refused(tmp_path: pathlib.Path) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1, 8, 8, 1])
        y = AvgPool(x, T=float, strides=[1, {1 << 40}, {1 << 40}, 1], ksize=[1, 2, 2, 1], padding="VALID")
    """)
    with pytest.raises(FormatError, match=r"no room for a number among .*1099511627776"):
        pocketgraph.export(graph, tmp_path / "net.tflite")
    assert not list(tmp_path.iterdir())
