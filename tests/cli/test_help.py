"""What --help tells: every option in words of its own, once, and an example for every command."""

from __future__ import annotations

import re

import click
import pytest

from command_line import call
from pocketgraph.cli.main import COMMANDS, FORMER, Commands
from pocketgraph.cli.shared.former_options import FORMER_OPTIONS
from pocketgraph.cli.shared.options import distinct_names


def parts() -> list[tuple[str, click.Command]]:
    """Every command that does something, by what is typed."""
    found = []
    for name in COMMANDS:
        command = Commands().get_command(click.Context(click.Command("pocketgraph")), name)
        assert command is not None
        found += (
            [(f"{name} {key}", part) for key, part in command.commands.items()]
            if isinstance(command, click.Group)
            else [(name, command)]
        )
    return found


@pytest.mark.parametrize(("typed", "command"), parts())
def test_every_option_is_told_of(typed: str, command: click.Command) -> None:
    """Each alone too: the Tab key of zsh and fish shows an option's text without the one before."""
    for parameter in command.get_params(click.Context(command)):
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help, parameter.name
            assert "ikewise" not in parameter.help, parameter.name
    assert f"pocketgraph {typed}" in (command.help or "")


@pytest.mark.parametrize(("typed", "command"), parts())
def test_every_value_has_a_word_of_its_own(typed: str, command: click.Command) -> None:
    """A file is FILE, a folder DIR, names NAMES; TEXT is what a person writes for others to read."""
    context = click.Context(command)
    shown = {one.name: one.make_metavar(context) for one in command.params if isinstance(one, click.Option)}
    texts = {name for name, word in shown.items() if word == "TEXT"}
    assert texts <= {"author", "description", "license_text", "model_version"}


def test_spellings_that_are_the_same_are_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("quantize", "--help") == 0
    told = capsys.readouterr().out
    assert "--max_accuracy_drop POINTS" in told
    assert "--max-accuracy-drop" not in re.sub(r"pocketgraph [^\n]*", "", told)
    assert call("export", "--help") == 0
    told = capsys.readouterr().out
    assert "--with_metadata TRUE|FALSE" in told
    assert "-o, --output" in told
    option = click.Option(["-o", "--output_graph", "--output-graph", "--output"])
    assert distinct_names(option) == ["-o", "--output_graph", "--output"]
    option = click.Option(["--flip_left_right/--no_flip_left_right"])
    assert distinct_names(option) == ["--flip_left_right", "--no_flip_left_right"]


def test_dashes_stand_for_underscores_in_every_option() -> None:
    for typed, command in parts():
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts) if name.startswith("--")}
        for name in [name for name in known if "_" in name]:
            assert name.replace("_", "-") in known, f"{typed} {name}"
    retrain = next(command for typed, command in parts() if typed == "retrain")
    context = retrain.make_context("retrain", ["base.pb", "--no-flip-left-right", "--image-dir=photos"])
    assert (context.params["mirror"], context.params["image_dir"]) == (False, "photos")


def test_only_commands_that_open_models_take_a_key() -> None:
    keyed = {typed for typed, command in parts() if any("--key_file" in one.opts for one in command.params)}
    without = {typed for typed, _ in parts()} - keyed
    assert without == {
        "transforms", "dataset apply", "dataset export", "completion install", "completion uninstall",
        "completion show", "help",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("former", "instead"),
    [
        ("toco", "export MODEL.pb -o MODEL.tflite"),
        ("tflite-convert", "export MODEL.pb -o MODEL.tflite"),
        ("export_inference_graph.py", "freeze_graph TRAINING -o FROZEN.pb"),
        ("compare_graphs", "view MODEL.pb --compare=OTHER.pb"),
    ],
)
def test_tools_that_came_before_are_known_by_name(
    capsys: pytest.CaptureFixture[str], former: str, instead: str
) -> None:
    assert call(former, "--help") == 2
    assert f"there is no command '{former}'; here it is pocketgraph {instead}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "former", "here"),
    [(command, former, here) for command, options in FORMER_OPTIONS.items() for former, here in options.items()],
)
def test_options_of_former_tools_are_known_by_name(
    capsys: pytest.CaptureFixture[str], command: str, former: str, here: str
) -> None:
    assert call(command, f"--{former.replace('_', '-')}=x") == 2
    assert f"; here it is {here} (" in capsys.readouterr().err
    assert call(command, "--help") == 0
    assert here in capsys.readouterr().out.replace("[", " ").replace(",", " ").split()


@pytest.mark.parametrize("value", ["nan", "inf", "-1e999"])
def test_no_option_takes_a_number_that_is_none(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    for typed, command in parts():
        for option in command.params:
            if isinstance(option, click.Option) and isinstance(option.type, click.types.FloatParamType):
                assert call(*typed.split(), f"{option.opts[0]}={value}") == 2
                said = capsys.readouterr().err
                assert option.opts[0] in said, f"{typed} {option.opts[0]}: {said}"
    assert call("export", "net.pb", "-o", "net.tflite", f"--tolerance={value}") == 2
    assert "--tolerance" in capsys.readouterr().err


def test_a_command_that_is_asked_for_again_keeps_its_options_types() -> None:
    types = [[option.type for _, command in parts() for option in command.params] for _ in range(2)]
    assert all(first is second for first, second in zip(*types, strict=True))


@pytest.mark.parametrize("instead", FORMER.values())
def test_what_does_a_former_tools_work_is_a_command(instead: str) -> None:
    assert instead.split()[0] in COMMANDS
