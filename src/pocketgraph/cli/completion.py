"""``pocketgraph completion``: has a shell complete what is typed with the Tab key."""

from __future__ import annotations

import os
from pathlib import Path

import click

from pocketgraph.cli.shared.completed_names import VARIABLE
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import UsageError

SHELLS = ("bash", "zsh", "fish")
MARK = "# Tab completion of pocketgraph"
MADE = ", for which this file was made"


@click.group("completion")
def command() -> None:
    """Have the Tab key complete commands, options, files, and names of the model that is typed.

    \b
      pocketgraph completion install
      pocketgraph completion install zsh
      pocketgraph completion uninstall
    """


@command.command("install")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def install(shell: str | None) -> None:
    """Install it for SHELL, by default the one that $SHELL names: a script, and a line that reads it at start-up.

    \b
      pocketgraph completion install
      pocketgraph completion install zsh
    """
    chosen = chosen_shell(shell, "install")
    place, started = places(chosen)
    write(place, script(chosen).encode())
    echo(f"written: {place}")
    line = f'. "{place}"  {MARK}'
    if started is not None:
        text = started.read_bytes() if started.exists() else b""  # in whatever encoding
        line += "" if os.path.lexists(started) else MADE
        if MARK.encode() not in text:
            before = b"\n" if text and not text.endswith(b"\n") else b""
            write(started, text + before + os.fsencode(f"{line}\n"))
            echo(f"added to {started}: {line}")
    echo(f"It works in the next {chosen} that is started.")


@command.command("uninstall")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def uninstall(shell: str | None) -> None:
    """Take away what install wrote for SHELL: the script, and the line that reads it; the rest of its file stays.

    \b
      pocketgraph completion uninstall
      pocketgraph completion uninstall zsh
    """
    chosen = chosen_shell(shell, "uninstall")
    place, started = places(chosen)
    was_there = place.exists()
    if was_there:
        place.unlink()
        echo(f"removed: {place}")
    lines = started.read_bytes().splitlines(keepends=True) if started is not None and started.exists() else []
    others = [line for line in lines if MARK.encode() not in line]
    if started is not None and others != lines:
        if not others and MADE.encode() in lines[0]:
            started.unlink()
            echo(f"removed: {started}")
        else:
            write(started, b"".join(others))
            echo(f"taken out of {started}: {MARK}")
    elif not was_there:
        echo(f"nothing is installed for {chosen}")


@command.command("show")
@click.argument("shell", type=click.Choice(SHELLS))
def show(shell: str) -> None:
    """Print the script for SHELL, to be kept wherever it reads such scripts.

    \b
      pocketgraph completion show fish > pocketgraph.fish
    """
    echo(script(shell))


def chosen_shell(shell: str | None, verb: str) -> str:
    """The shell that is named, or the one that $SHELL names."""
    chosen = shell or Path(os.environ.get("SHELL", "")).name
    if chosen not in SHELLS:
        raise UsageError("it is not clear which shell this is for", hint=f"pocketgraph completion {verb} bash")
    return chosen


def script(shell: str) -> str:
    """What a shell has to read."""
    from click.shell_completion import get_completion_class

    from pocketgraph.cli.main import group
    from pocketgraph.cli.shared.completing_shells import use_shells

    use_shells()
    kind = get_completion_class(shell)
    assert kind is not None
    made = kind(group, {}, "pocketgraph", VARIABLE)
    return made.source_template % made.source_vars()


def places(shell: str) -> tuple[Path, Path | None]:
    """Where the script goes, and the file that is to read it; None where the shell finds it by its name."""
    home = Path.home()
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    if shell == "fish":
        return config / "fish" / "completions" / "pocketgraph.fish", None
    started = home / ".bashrc" if shell == "bash" else Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
    return data / "pocketgraph" / f"completion.{shell}", started


def write(path: Path, content: bytes) -> None:
    """Writes a file and the folders that it lies in."""
    from pocketgraph.formats.files import check_folder, write_atomically

    check_folder(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
