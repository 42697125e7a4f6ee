"""Targets: what reads the texts of a command line: transform strings, values, names, flags."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import warnings
from pathlib import Path

import click

from fuzz.data_readers import DEEP
from fuzz.targets import folder, stored, target
from pocketgraph.cli.main import COMMANDS, group, main
from pocketgraph.cli.shared import data_options, graph_to_graph, options
from pocketgraph.errors import PocketgraphError
from pocketgraph.formats import to_bytes
from pocketgraph.freezing import binding
from pocketgraph.graph import canonical
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import grammar, tool, transform

GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[1,4])
    n = Placeholder(dtype=int32)
    p = Placeholder(dtype=bool)
    t = Placeholder(dtype=string)
    q = Placeholder(dtype=qint8)
    w = Const(float[4,2] 0.5)
    y = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
    low = Const(float -1.0)
    range = RequantizationRange(y, low, low, Tinput=qint32)
    z = Relu(y, T=float)
""").replace(inputs=["x"], outputs=["z"])
MODEL = to_bytes(GRAPH)
PARSED_ONLY = ("benchmark_model", "evaluate", "live", "quantize")
"""Commands whose work takes seconds, or does not end: only their flags are read."""
RULES = [name.encode() for name in tool.built_in()]
RULE_WORDS = (
    *RULES,
    b"(",
    b")",
    b"=",
    b",",
    b'"',
    b" ",
    b"\n",
    b"ignore_errors",
    b"true",
    b"nan",
    b"-1",
    b"1e999",
    b"name=x",
)


@target(
    "transforms/grammar.py transforms/rule_parameters.py",
    lambda: [b'strip_unused_nodes(type=float, shape="1,2") fold_constants', *RULES, b"(" * 2000],
    RULE_WORDS,
)
def read_transform_string(data: bytes) -> None:
    for name, given in grammar.parse_transforms(data.decode("utf-8", "surrogateescape")):
        tool.bind(tool.find(name), given)


@target(
    "transforms/tool.py transforms/rules/",
    lambda: (
        [b"%s" % name for name in RULES]
        + [b"round_weights(num_steps=4)", b"rename_op(old_op_name=Relu, new_op_name=Relu6)"]
    ),
    RULE_WORDS,
    longest=256,
)
def read_transform_run(data: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transform(GRAPH, data.decode("utf-8", "replace"))


LOG = b";range__print__;__requant_min_max:[-1.5][2.5]\n"


@target(
    "transforms/rules/freeze_requantization_ranges.py",
    lambda: [LOG, LOG * 3],
    (LOG, b"__print__", b"__requant_min_max:", b"[", b"]", b"nan", b"1e999", b";"),
)
def read_range_log(data: bytes) -> None:
    path = stored(data, "log.txt")
    transform(GRAPH, [f'freeze_requantization_ranges(min_max_log_file="{path}")'])


@target(
    "freezing/binding.py cli/shared/data_options.py cli/shared/options.py",
    lambda: [b"p=false", b"x=[[1, 2, 3, 4]]", b"n=7", b"t=abc", b"x:1,4", b"a=1.5", b"x=NaN", b"q=3", b"n=" + DEEP],
    (b"=", b"[", b"]", b"{", b'"', b"1e999", b"NaN", b"Infinity", b"null", b"9223372036854775808", b":", b","),
    longest=8192,
)  # fmt: skip
def read_values(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for read in (
        lambda: binding.bound(GRAPH, dict([binding.split(text)])),
        lambda: data_options.feeds((text,)),
        lambda: data_options.shapes_of((text,)),
        lambda: options.names(text),
        lambda: graph_to_graph.placeholder_types(text),
        lambda: canonical(text),
    ):
        with contextlib.suppress(PocketgraphError):
            read()


def flags() -> list[bytes]:
    """All flags of all commands."""
    found = {"m.pb", "out.pb", "-h", "--", "-", "x:0", "1,4", "true", "z", "nan", "99999999999999999999"}
    for name in COMMANDS:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        for parameter in command.params:
            found.update(parameter.opts)
            found.update(f"{flag}=" for flag in parameter.opts)
    return sorted(flag.encode() for flag in found)


def calls() -> list[bytes]:
    """A call of each command: the model, and where it takes one, an output."""
    found = [f"{name}\0m.pb" for name in COMMANDS]
    found += [f"{name}\0m.pb\0-o\0out.pb" for name in COMMANDS]
    found += [f"{name}\0--input_graph=m.pb\0--output_graph=out.pb\0--output_node_names=z" for name in COMMANDS]
    found += ["transform_graph\0m.pb\0-o\0out.pb\0--inputs=x\0--outputs=z\0--transforms=strip_unused_nodes"]
    return [call.encode() for call in found]


@target("cli/", calls, flags(), longest=512)
def read_command_line(data: bytes) -> None:
    """A command with flags of any kind, in a folder with one model; nothing may be written elsewhere."""
    words = [word.replace("/", "_") for word in data.decode("utf-8", "replace").split("\0")]
    os.chdir(folder())
    Path("m.pb").write_bytes(MODEL)
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if words[0] in PARSED_ONLY:
                command = group.get_command(click.Context(group), words[0])
                assert command is not None
                with contextlib.suppress(click.ClickException, click.exceptions.Exit):
                    command.make_context(words[0], words[1:])
            else:
                main(words)
        except SystemExit as stop:
            code = stop.code
    parts = [name for name in os.listdir() if name.endswith(".part")]
    for entry in os.scandir():
        shutil.rmtree(entry) if entry.is_dir() else os.unlink(entry)
    assert code in (0, 1, 2), f"{words} left with {code}"
    assert "Traceback" not in err.getvalue(), f"{words}: {err.getvalue()}"
    assert not parts, f"{words} left {parts}"
