"""Hints for names that are not there, the nearest ones in small pools and in large ones; how messages name options."""

import ast
import pathlib
import re
from collections.abc import Callable, Iterator

import click
import numpy as np
import pytest
from click.testing import CliRunner

import pocketgraph
from pocketgraph.errors import (
    COMPARED,
    FormatError,
    PocketgraphError,
    command_on_model,
    did_you_mean,
    nearest,
    option,
    quoted,
)
from pocketgraph.formats import sealed
from pocketgraph.graph.text_format import parse
from support import ROOT

LARGE = [f"tower_{n % 7}/block{n // 100}/unit_{n % 100}/BatchNorm/FusedBatchNorm_{n}" for n in range(5 * COMPARED)]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (LARGE[4321].replace("Fused", "Fsed"), LARGE[4321]),
        (LARGE[17].upper(), LARGE[17]),
        ("import/" + LARGE[4000], LARGE[4000]),
        (LARGE[2500].removeprefix("tower_1/"), LARGE[2500]),
    ],
)
def test_the_name_that_was_meant_is_first_of_thousands(name: str, meant: str) -> None:
    assert nearest(name, LARGE)[0] == meant


@pytest.mark.parametrize(
    ("word", "posix", "windows"),
    [
        ("net.pb", "net.pb", "net.pb"),
        (r"C:\out\net.pb", r"'C:\out\net.pb'", r"C:\out\net.pb"),
        ("my photos", "'my photos'", '"my photos"'),
        ("a&b;c", "'a&b;c'", '"a&b;c"'),
        ("", "''", '""'),
    ],
)
def test_words_of_printed_commands_are_quoted_as_the_shell_takes_them(word: str, posix: str, windows: str) -> None:
    """cmd.exe takes single quotes for part of a name."""
    assert (quoted(word, "posix"), quoted(word, "nt")) == (posix, windows)


def test_an_error_is_one_line_whatever_names_are_in_it() -> None:
    error = FormatError("there is no 'a\nb\x1b[2J'", where="x\r\ny", hint="rename\nit")
    assert str(error) == r"x\r\ny: there is no 'a\nb\x1b[2J'; rename\nit"
    assert (error.what, error.where, error.hint) == (r"there is no 'a\nb\x1b[2J'", r"x\r\ny", r"rename\nit")


def test_a_part_of_a_name_is_found() -> None:
    assert nearest("softmax", [*LARGE, "head/predictions/softmax_v2"]) == ["head/predictions/softmax_v2"]


def test_nothing_near_is_no_hint() -> None:
    assert did_you_mean("xyzzy", ["image", "labels"]) == ""
    assert did_you_mean("", []) == ""


def test_an_option_is_a_flag_only_while_a_command_runs() -> None:
    @click.command()
    def command() -> None:
        click.echo(f"{option('feed', 'feeds')} {option('max-kl')}")

    assert (option("feed", "feeds"), option("max-kl"), option("outputs")) == ("feeds", "max_kl", "outputs")
    import pocketgraph.cli  # noqa: F401

    assert CliRunner().invoke(command).output == "--feed --max-kl\n"
    assert option("feed", "feeds") == "feeds"


SHELL = ("pocketgraph ", "pip install ", "main.py --", "ray start", "rpicam-hello ", "tensorflowjs_converter ")
"""Whole commands to type."""
ELSEWHERE = (
    "cli/", "apps/shipping/next_commands.py", "apps/retraining/retraining_page.py", "inspect/identify.py",
    "inspect/timed_program_worker.py", "inspect/summarize.py", "apps/speech_commands/wav_features.py",
)  # fmt: skip
"""The command line, and what is proposed to type next; a program of its own;
what the original printed."""


def test_lower_floors_name_options_and_not_flags() -> None:
    found = []
    source = ROOT / "src" / "pocketgraph"
    for path in source.rglob("*.py"):
        name, text = path.relative_to(source).as_posix(), path.read_text("utf-8")
        if name.startswith(ELSEWHERE) or "--" not in text:
            continue
        tree = ast.parse(text)
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in documents:
                continue
            if re.search(r"(^|[\s(`'])--([a-z]|$)", node.value) and not any(word in node.value for word in SHELL):
                found.append(f"{name}:{node.lineno} {node.value!r}")
    assert found == []


STAND_IN = re.compile(r"…|\.\.\.|(?<![\w{])[A-Z][A-Z_]+\b|^`?pocketgraph [a-z_]+`?$")
"""A word in place of what only the reader knows, or a command without its model."""
SYNTAX = ("cli/help.py", "cli/main.py")
"""What tells how commands are called at all."""


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each text of a module that is no docstring, what is put in being {}, and its line."""
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def _stand_ins(text: str) -> list[str]:
    """The commands in a text that do not run as they stand there."""
    found = re.findall(r"`pocketgraph [^`]*`|(?<!`)\bpocketgraph [a-z]\w+ [^`;,]*", text)
    return [command for command in found if STAND_IN.search(command)]


@pytest.mark.parametrize(
    "text",
    [
        "`pocketgraph check MODEL` lists",
        "pocketgraph nearest {} PHOTO",
        "`pocketgraph ship` cuts",
        "pocketgraph ship a -o …",
    ],
)
def test_commands_with_stand_ins_are_known(text: str) -> None:
    assert _stand_ins(text)
    assert not _stand_ins("`pocketgraph check export/1` lists all of an ONNX file")


def test_printed_commands_run_as_they_are_printed() -> None:
    """A message that knows no path says it in words."""
    source = ROOT / "src" / "pocketgraph"
    modules = {path.relative_to(source).as_posix(): path.read_text("utf-8") for path in source.rglob("*.py")}
    found = {
        f"{name}:{line}": commands
        for name, code in modules.items()
        if name not in SYNTAX and "pocketgraph " in code
        for line, text in _texts(ast.parse(code))
        if (commands := _stand_ins(text))
    }
    assert found == {}


def test_a_command_names_the_model_that_was_given(tmp_path: pathlib.Path) -> None:
    model = tmp_path / "my model.pb"
    ops = ["Digamma", "Lgamma", "Erfinv", "Ndtri", "BesselI0e", "BesselI1e"]
    lines = ["x = Placeholder(dtype=float, shape=[2, 2])"]
    lines += [f"{op} = {op}({before}, T=float)" for before, op in zip(["x", *ops], ops, strict=False)]
    pocketgraph.save(parse("\n".join(lines)), model)
    from pocketgraph.cli.export.export import command

    refused = CliRunner().invoke(command, [str(model), "-o", str(tmp_path / "net.tflite")]).exception
    assert f"(`pocketgraph check {quoted(str(model))}` lists all)" in str(refused)
    assert command_on_model("pocketgraph check {}") == "check"
    words = "freeze_graph with repair"
    assert command_on_model("pocketgraph freeze_graph {} -o frozen.pb --repair", words) == words


def _no_key(folder: pathlib.Path) -> None:
    path = folder / "w.pb"
    pocketgraph.save(parse("x = Placeholder(dtype=float)\ny = Relu(x, T=float)"), path)
    sealed.seal(path, folder / "w.sealed", bytes(range(32)))
    pocketgraph.load(folder / "w.sealed")


def _two_outputs_of_an_input(folder: pathlib.Path) -> None:
    graph = parse("""
        queue = Placeholder(dtype=resource)
        batch = QueueDequeueV2(queue, component_types=[float, float])
        y = Add(batch, batch:1, T=float)
    """)
    pocketgraph.transform(graph, "strip_unused_nodes", inputs=["batch"], outputs=["y"])


def _unknown_op(folder: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float)\ny = Frobnicate(x, T=float)")
    pocketgraph.Session(graph).run("y", {"x": np.float32([1])})


def _training_batch_norm(folder: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, 2, 2, 1])
        ones = Const(float [1.0])
        none = Const(float [])
        y = FusedBatchNormV3(x, ones, ones, none, none, T=float, U=float, is_training=true, epsilon=0.001)
    """)
    pocketgraph.freeze(graph, outputs=["y"])


def _open_sizes(folder: pathlib.Path) -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[?, ?, 3])
        scale = Placeholder(dtype=float)
        y = Mul(x, scale, T=float)
    """)
    pocketgraph.benchmark(graph)


def _no_samples(folder: pathlib.Path) -> None:
    graph = parse("x = Placeholder(dtype=float, shape=[?, 3])\ny = Relu(x, T=float)")
    pocketgraph.quantize(graph, None, mode="static")


@pytest.mark.parametrize(
    "call",
    [_no_key, _two_outputs_of_an_input, _unknown_op, _training_batch_norm, _open_sizes, _no_samples],
)
def test_errors_of_functions_name_arguments_and_not_flags(
    call: Callable[[pathlib.Path], None], tmp_path: pathlib.Path
) -> None:
    """Flags stand in whole commands only, which the message quotes."""
    with pytest.raises(PocketgraphError) as found:
        call(tmp_path)
    assert "--" not in re.sub(r"`pocketgraph [^`]*`", "", str(found.value))
