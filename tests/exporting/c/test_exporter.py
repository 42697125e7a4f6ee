"""The C exporter at the front door: what it writes, and what it refuses."""

from __future__ import annotations

import errno
import pathlib
import shutil
import subprocess
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pocketgraph
from c_programs import STRICT, coded, library_of, needs_cc
from pocketgraph.errors import PocketgraphError, RunError, UsageError, option
from pocketgraph.exporting import programs
from pocketgraph.exporting.c import building, c_exporter, library
from pocketgraph.exporting.c.building import compiler
from pocketgraph.exporting.c.operators.emitter_table import entry_of
from pocketgraph.exporting.programs import LackingError
from pocketgraph.formats.files import write_files
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.text_format import parse
from pocketgraph.litert.program import Operation, Program, Value
from pocketgraph.quantization.core.program_runner import ProgramRunner

NET = parse("""
    picture = Placeholder(dtype=float, shape=[1, 4, 4, 3])
    k = Const(float [[[[1.0, -1.0], [0.5, 2.0], [-2.0, 0.25]]]])
    seen = Conv2D(picture, k, T=float, strides=[1, 1, 1, 1], padding="SAME")
    axes = Const(int32 [1, 2])
    mean = Mean(seen, axes, T=float, Tidx=int32)
    scores = Softmax(mean, T=float)
""")
TWO = """
#include "model.h"
#include <stdio.h>
#include <string.h>
static uint64_t memory[2][MODEL_ARENA_BYTES / 8 + 16];
int main(void) {
    model one, two;
    float first[2], second[2];
    unsigned char *a = (unsigned char *)memory[0], *b = (unsigned char *)memory[1];
    a += (MODEL_ALIGNMENT - (uintptr_t)a % MODEL_ALIGNMENT) % MODEL_ALIGNMENT;
    b += (MODEL_ALIGNMENT - (uintptr_t)b % MODEL_ALIGNMENT) % MODEL_ALIGNMENT;
    if (model_init(&one, a, MODEL_ARENA_BYTES - 1, model_weights, MODEL_WEIGHTS_BYTES) != MODEL_BAD_ARENA) return 1;
    if (model_init(&one, a + 1, MODEL_ARENA_BYTES, model_weights, MODEL_WEIGHTS_BYTES) != MODEL_BAD_ARENA) return 2;
    if (model_init(&one, a, MODEL_ARENA_BYTES, "another model's weights, of course, which are a good deal shorter",
                   MODEL_WEIGHTS_BYTES) != MODEL_BAD_WEIGHTS) return 3;
    if (model_init(&one, a, MODEL_ARENA_BYTES, model_weights, MODEL_WEIGHTS_BYTES) != MODEL_OK) return 4;
    if (model_init(&two, b, MODEL_ARENA_BYTES, model_weights, MODEL_WEIGHTS_BYTES) != MODEL_OK) return 5;
    for (int i = 0; i < 48; i++) {
        model_input_picture(&one)[i] = 0;
        model_input_picture(&two)[i] = (float)i;
    }
    model_invoke(&one);
    memcpy(first, model_output_scores(&one), sizeof first);
    model_invoke(&two);
    memcpy(second, model_output_scores(&two), sizeof second);
    if (memcmp(first, model_output_scores(&one), sizeof first) != 0) return 6;
    model_invoke(&two);
    if (memcmp(second, model_output_scores(&two), sizeof second) != 0) return 7;
    return first[0] == second[0] ? 8 : 0;
}
"""


@needs_cc
@pytest.mark.usefixtures("optimizing_compiler")
def test_the_folder_builds_itself_and_passes_its_own_test(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "net"
    labels = ['a "cat"', "??/ dog"]
    made = pocketgraph.export(NET, place, target="c", labels=labels, input_mean=127.5, input_std=127.5)
    assert made.checks[0].passed
    assert {"model.h", "model.c", "model_weights.c", "Makefile", "CMakeLists.txt"} <= {p.name for p in place.iterdir()}
    if shutil.which("make") is None:
        pytest.skip("there is no make here")
    flags = "CFLAGS=-O1 -Wconversion -Wvla -Werror -fsanitize=address,undefined"
    done = subprocess.run(["make", "-C", place, "all", "check", flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "passed" in done.stdout
    (place / "white.ppm").write_bytes(b"P6\n# a comment\n8 8\n255\n" + b"\xff" * 192)
    shown = subprocess.run([place / "model_main", place / "white.ppm"], capture_output=True, text=True, check=True)
    assert 'a "cat"' in shown.stdout
    assert "??/ dog" in shown.stdout
    wrong = subprocess.run([place / "model_main", place / "model.h"], capture_output=True, text=True)
    assert wrong.returncode == 1
    assert "not a file of 192 bytes" in wrong.stderr


@needs_cc
def test_the_example_shows_elements_of_sixteen_bits(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=int16, shape=[3])
        axis = Const(int32 [0])
        y = ReverseV2(x, axis, T=int16, Tidx=int32)
    """)
    pocketgraph.export(graph, tmp_path / "net", target="c")
    np.array([-300, 7, 20], np.int16).tofile(tmp_path / "in.bin")
    call = [building.compiled(str(tmp_path / "net"), "model", "main", str(tmp_path)), tmp_path / "in.bin"]
    shown = subprocess.run(call, capture_output=True, text=True, check=True)
    assert shown.stdout.split()[3:] == ["20", "[0]", "7", "[1]", "-300", "[2]"]


@needs_cc
def test_outputs_of_nan_are_not_proven_and_so_not_passed(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,4])
        squares = Mul(x, x, T=float)
        below = Neg(squares, T=float)
        y = Log(below, T=float)
    """)
    pocketgraph.export(graph, tmp_path / "net", target="c")
    done = subprocess.run(["make", "-C", tmp_path / "net", "all", "check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "NOT PROVEN" in done.stdout
    assert "passed" not in done.stdout


@needs_cc
@pytest.mark.usefixtures("optimizing_compiler")
def test_a_library_of_one_layer_builds_without_a_warning_as_its_makefile_does(tmp_path: pathlib.Path) -> None:
    """gcc 12 puts the one call of the layer's kernel in line, and then warned of a loop that it had unrolled."""
    weights = np.linspace(-1, 1, 72, dtype=np.float32).reshape(24, 3)
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1, 24])
        w = Const(float {weights.tolist()})
        y = MatMul(x, w, T=float)
    """)
    place = tmp_path / "net"
    pocketgraph.export(graph, place, target="c")
    command = [building.compiler(), "-std=c99", "-O3", *STRICT, "-c", "model.c"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@needs_cc
def test_models_run_side_by_side_and_refuse_wrong_memory(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "net"
    pocketgraph.export(NET, place, target="c")
    (place / "two.c").write_text(TWO)
    command = [building.compiler(), "-std=c99", "-fsanitize=address,undefined", *STRICT, "two.c", "model.c"]
    subprocess.run([*command, "model_weights.c", "-lm", "-o", "two"], cwd=place, check=True)
    assert subprocess.run([place / "two"]).returncode == 0


@needs_cc
@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm here")
def test_no_state_no_allocation_and_little_from_outside(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "net"
    pocketgraph.export(NET, place, target="c")
    command = [building.compiler(), "-std=c99", "-O2", "-ffreestanding", "-fno-pie", *STRICT, "-c", "model.c"]
    subprocess.run(command, cwd=place, check=True)
    listed = subprocess.run(["nm", "model.o"], cwd=place, capture_output=True, text=True, check=True).stdout
    kinds = [line.split()[-2:] for line in listed.splitlines()]
    assert not [name for kind, name in kinds if kind in "BbCDd" and not name.startswith((".", "DW.ref"))]
    outside = {name for kind, name in kinds if kind == "U"}
    assert outside <= {"memcpy", "memcmp", "memset", "memmove", "expf", "_GLOBAL_OFFSET_TABLE_", "__cpu_model",
                       "__cpu_features2", "__cpu_indicator_init", "__stack_chk_fail"}  # fmt: skip


@needs_cc
@pytest.mark.parametrize("kind", ["half", "bfloat16"])
@pytest.mark.parametrize("mode", ["float32", "static"])
def test_inputs_of_sixteen_bits_are_fed_as_the_float32_that_the_library_takes(
    kind: str, mode: str, tmp_path: pathlib.Path
) -> None:
    graph = parse(f"""
        x = Placeholder(dtype={kind}, shape=[1, 4])
        wide = Cast(x, SrcT={kind}, DstT=float, Truncate=false)
        w = Const(float [[1.0, 0.5], [-2.0, 0.25], [0.5, 0.5], [1.5, -1.0]])
        y = MatMul(wide, w, T=float, transpose_a=false, transpose_b=false)
    """)
    rows = np.random.default_rng(3).normal(size=(8, 4)).astype(np.float32)
    made = pocketgraph.export(graph, tmp_path / "net", target="c", mode=mode, samples={"x": rows})
    assert made.checks[0].passed
    assert "float *model_input_x(" in (tmp_path / "net" / "model.h").read_text()
    if mode == "static":
        in_codes = pocketgraph.export(graph, tmp_path / "net.tflite", mode=mode, io="int8", samples={"x": rows})
        assert in_codes.checks[0].passed


def test_values_that_the_model_does_not_take_are_an_error_that_says_so(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4, 3])
        i = Placeholder(dtype=int32, shape=[4, 1])
        y = GatherNd(x, i, Tparams=float, Tindices=int32)
    """)
    samples = {"x": np.zeros((4, 3), np.float32), "i": np.full((4, 1), 9, np.int32)}
    with pytest.raises(RunError, match="LiteRT does not run the model on this sample: gather_nd index out of bounds"):
        pocketgraph.export(graph, tmp_path / "net", target="c", samples=samples)


@needs_cc
def test_weights_may_be_a_file(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "net"
    made = pocketgraph.export(NET, place, target="c", weights="file", prefix="eye")
    assert made.checks[0].passed
    assert (place / "eye.weights").stat().st_size % 8 == 0
    assert "eye_map" in (place / "eye.h").read_text()


@needs_cc
@pytest.mark.usefixtures("optimizing_compiler")
@pytest.mark.parametrize("io", ["float", "int8"])
def test_eight_bits(tmp_path: pathlib.Path, io: str) -> None:
    rng = np.random.default_rng(5)
    samples = {"picture": rng.normal(0, 1, (6, 4, 4, 3)).astype(np.float32)}
    place = tmp_path / "net"
    made = pocketgraph.export(NET, place, target="c", mode="static", io=io, samples=samples)
    assert made.checks[0].passed
    assert ("int8_t *model_input_picture" in (place / "model.h").read_text()) == (io == "int8")


def test_open_sizes_are_refused_but_for_the_batch(tmp_path: pathlib.Path) -> None:
    wide = parse("x = Placeholder(dtype=float, shape=[1, ?, 8, 3])\ny = Relu(x, T=float)")
    with pytest.raises(UsageError, match=r"'x' \[1, \?, 8, 3\]") as caught:
        pocketgraph.export(wide, tmp_path / "net", target="c")
    assert 'shapes={"x": (1,' in str(caught.value.hint)
    assert not list(tmp_path.iterdir())
    made = pocketgraph.export(wide, tmp_path / "stated", target="c", shapes={"x": (1, 5, 8, 3)})
    assert "[1, 5, 8, 3]" in (tmp_path / "stated" / "model.h").read_text()
    assert not any("batch" in note for note in made.notes)
    batch = parse("x = Placeholder(dtype=float, shape=[?, 3])\ny = Relu(x, T=float)")
    assert any("batch of 'x'" in n for n in pocketgraph.export(batch, tmp_path / "batch", target="c").notes)


def test_a_number_each_has_the_batch_of_what_it_goes_with(tmp_path: pathlib.Path) -> None:
    """The last word beside a state; a number of values alone may be a sound's length."""
    text = """
        word = Placeholder(dtype=int32, shape=[?])
        state = Placeholder(dtype=float, shape=[?,2])
        table = Const(float [[1, 2], [3, 4], [5, 6]])
        axis = Const(int32 0)
        row = GatherV2(table, word, axis, Tparams=float, Tindices=int32, Taxis=int32)
        y = AddV2(row, state, T=float)
    """
    made = pocketgraph.export(parse(text), tmp_path / "step", target="c")
    assert {f"the batch of '{name}' is fixed to 1" for name in ("word", "state")} <= {*made.notes}
    assert made.checks[0].passed
    alone = parse(text.replace("shape=[?,2]", "shape=[1,2]"))
    with pytest.raises(UsageError, match="leaves some open: 'word'"):
        pocketgraph.export(alone, tmp_path / "alone", target="c")
    both = parse(text.replace("shape=[?,2]", "shape=[?,?]"))
    with pytest.raises(UsageError, match=r'say them: shapes={"word": \(1,\), "state": \(1, 1\)}'):
        pocketgraph.export(both, tmp_path / "both", target="c")


def test_ops_that_are_lacking_are_all_named(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=double, shape=[2, 2])
        inverse = MatrixInverse(x, T=double)
        root = Cholesky(inverse, T=double)
    """)
    with pytest.raises(LackingError) as caught:
        pocketgraph.export(graph, tmp_path / "net", target="c", outputs=["root", "inverse"])
    assert set(caught.value.reasons) >= {"inverse", "root"}
    assert not list(tmp_path.iterdir())


def test_what_is_lacking_is_named_before_the_model_is_quantized(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[4, 3])
        w = Const(float [[1.0, 0.5], [-2.0, 0.25], [0.5, 0.5]])
        product = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
        lengths = Const(int32 [1, 2, 2, 1])
        turned = ReverseSequence(product, lengths, T=float, Tlen=int32, seq_dim=1, batch_dim=0)
    """)
    monkeypatch.setattr(programs, "quantize_program", lambda *given: pytest.fail("it was quantized"))
    monkeypatch.setattr(library, "entry_of", lambda each: None if each.code == "REVERSE_SEQUENCE" else entry_of(each))
    samples = {"x": np.ones((4, 3), np.float32)}
    with pytest.raises(
        LackingError, match=r"1 node: ReverseSequence \('turned'\): REVERSE_SEQUENCE has no kernel in C"
    ):
        pocketgraph.export(graph, tmp_path / "net", target="c", mode="static", samples=samples)
    assert not list(tmp_path.iterdir())


@needs_cc
def test_eight_bits_of_a_layer_normalization(tmp_path: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1, 6])
        w = Const(float [[1.0, 0.5], [-2.0, 0.25], [0.5, 0.5], [1.5, -1.0], [0.1, 0.2], [0.7, 0.9]])
        axis = Const(int32 [1])
        mean = Mean(x, axis, T=float, Tidx=int32, keep_dims=true)
        apart = SquaredDifference(x, mean, T=float)
        variance = Mean(apart, axis, T=float, Tidx=int32, keep_dims=true)
        small = Const(float 0.001)
        sum = AddV2(variance, small, T=float)
        per = Rsqrt(sum, T=float)
        centered = Sub(x, mean, T=float)
        normal = Mul(centered, per, T=float)
        product = MatMul(normal, w, T=float, transpose_a=false, transpose_b=false)
        scores = LogSoftmax(product, T=float)
    """)
    samples = {"x": np.random.default_rng(5).normal(0, 1, (16, 6)).astype(np.float32)}
    place = tmp_path / "net"
    made = pocketgraph.export(graph, place, target="c", mode="static", io="int8", samples=samples)
    assert made.checks[0].passed
    code = (place / "model.c").read_text()
    assert "pg_squared_difference_s8(&" in code
    assert "pg_log_softmax_s8(" in code


def test_names_that_c_does_not_take(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="a word of C") as caught:
        pocketgraph.export(NET, tmp_path / "net", target="c", prefix="int")
    assert "prefix=int_model" in str(caught.value.hint)
    odd = parse("2/x = Placeholder(dtype=float, shape=[2])\n2/y = Relu(2/x, T=float)\n2.y = Neg(2/x, T=float)")
    pocketgraph.export(odd, tmp_path / "odd", target="c", outputs=["2/y", "2.y"])
    header = (tmp_path / "odd" / "model.h").read_text()
    assert "model_output_x2_y(" in header
    assert "model_output_x2_y_2(" in header


def test_litert_files_are_refused(tmp_path: pathlib.Path) -> None:
    pocketgraph.export(NET, tmp_path / "net.tflite")
    with pytest.raises(UsageError, match="finished already"):
        pocketgraph.export(tmp_path / "net.tflite", tmp_path / "net", target="c")


def test_labels_that_do_not_fit(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="3 labels and 2 scores"):
        pocketgraph.export(NET, tmp_path / "net", target="c", labels=["a", "b", "c"])


def test_codes_go_in_and_out_of_eight_bits_only(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="mode=static"):
        pocketgraph.export(NET, tmp_path / "net", target="c", io="int8")


def test_a_folder_that_is_not_empty_stays(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "net"
    place.mkdir()
    (place / "mine.txt").write_text("kept")
    with pytest.raises(UsageError, match="not empty"):
        pocketgraph.export(NET, place, target="c")
    assert [path.name for path in place.iterdir()] == ["mine.txt"]
    pocketgraph.export(NET, place, target="c", force=True)
    assert (place / "mine.txt").read_text() == "kept"
    assert (place / "model.c").exists()


def test_a_full_disk_leaves_nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: str, files: Any) -> None:
        write_files(folder, dict(list(files.items())[:2]))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(c_exporter, "write_files", full)
    with pytest.raises(PocketgraphError, match="no space left"):
        pocketgraph.export(NET, tmp_path / "net", target="c")
    assert not list(tmp_path.iterdir())


def test_a_full_temporary_folder_is_not_the_compilers_fault(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler, temporary = tmp_path / "cc", tmp_path / "temporary"
    temporary.mkdir()
    compiler.write_text("#!/bin/sh\ntouch $TMPDIR/cc1.s\necho 'as: /tmp/cc1.o: No space left on device' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with pytest.raises(PocketgraphError, match=r"no room for what the C compiler writes; make some .* TMPDIR"):
        pocketgraph.export(NET, tmp_path / "net", target="c")
    assert not [*temporary.iterdir()], "what the compiler leaves goes, too"


def test_without_a_compiler_it_is_written_and_said(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    made = pocketgraph.export(NET, tmp_path / "net", target="c")
    assert "no C compiler" in made.unchecked
    assert not made.checks


@needs_cc
@pytest.mark.usefixtures("optimizing_compiler")
@pytest.mark.parametrize(
    "between",
    [
        "moved = Transpose(x, order, T=float, Tperm=int32)",
        'd = Const(int32 [[0,0],[0,0],[0,0],[1,1]])\nmoved = MirrorPad(x, d, T=float, Tpaddings=int32, mode="REFLECT")',
    ],
)
def test_what_is_moved_is_there_for_the_next_operator_also_when_compilers_inline_both(
    tmp_path: pathlib.Path, between: str
) -> None:
    graph = parse(f"""
        x = Placeholder(dtype=float, shape=[1, 3, 4, 6])
        order = Const(int32 [0, 1, 3, 2])
        {between}
        shares = Softmax(moved, T=float)
        y = Transpose(shares, order, T=float, Tperm=int32)
    """)
    made = pocketgraph.export(graph, tmp_path / "net", target="c", outputs=["y"])
    assert made.checks[0].passed


@needs_cc
@pytest.mark.parametrize("io", ["float", "int8"])
def test_a_library_that_rounds_floats_on_its_way_passes_within_their_noise(io: str, tmp_path: pathlib.Path) -> None:
    """The last bit of a sine, which the C library and NumPy each compute their own way, decides on a code."""
    x, sines, codes = Value("x", FLOAT, (1, 24)), Value("sines", FLOAT, (1, 24)), coded("codes", (1, 24), 1 / 128, 0)
    steps = [Operation("SIN", [x], [sines]), Operation("QUANTIZE", [sines], [codes])]
    if io == "float":
        steps.append(Operation("DEQUANTIZE", [codes], [Value("numbers", FLOAT, (1, 24))]))
    program = Program([x], [steps[-1].outputs[0]], steps)
    array = np.random.default_rng(6).uniform(-1, 1, (1, 24)).astype(np.float32)
    files = library_of(program, golden=([array], ProgramRunner(program)([array]))).files
    assert b"double noise = 0.05;" in files["net_test.c"]
    write_files(str(tmp_path), files)
    flags = ["-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsanitize=address,undefined"]
    sources = ["net.c", "net_weights.c", "net_test.c"]
    subprocess.run([compiler(), *flags, *sources, "-lm", "-o", "test"], cwd=tmp_path, check=True)
    golden = np.frombuffer(files["golden/output_0.bin"], np.float32 if io == "float" else np.int8)
    few, many = golden.copy(), golden.copy()
    few[:3] -= golden.dtype.type(1 / 128 if io == "float" else 1)
    many[:12] = 0
    for wanted, passes in ((golden, True), (few, True), (many, False)):
        wanted.tofile(tmp_path / "golden/output_0.bin")
        done = subprocess.run(["./test"], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode == 0, "passed" in done.stdout) == (passes, passes), done.stdout


def test_a_library_without_such_floats_has_to_give_every_number(tmp_path: pathlib.Path) -> None:
    pocketgraph.export(NET, tmp_path / "net", target="c")
    assert "double noise = 0;" in (tmp_path / "net/model_test.c").read_text()


def test_notes_name_the_command_that_has_the_option(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of quantize are none of export."""
    quantize, told = programs.quantize_program, f"kept 1 in float, {option('float_share')}=0 keeps none"

    def quantized(*how: Any) -> Any:
        return SimpleNamespace(converted=quantize(*how).converted, notes=[told])

    monkeypatch.setattr(programs, "quantize_program", quantized)
    samples = np.random.default_rng(6).uniform(-1, 1, (4, 4, 4, 3)).astype(np.float32)
    made = pocketgraph.export(NET, tmp_path / "net", target="c", mode="static", samples=samples)
    assert f"kept 1 in float, `quantize` with {option('float_share')}=0 keeps none" in made.notes
