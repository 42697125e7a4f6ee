"""The one family of errors: what happened, where, and what to type next."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence

AGAIN = "copy, download or write it again"
"""What to do with a file that is damaged."""

GOES_ON = "goes_on"
"""The attribute of a KeyboardInterrupt that is true where something was kept from which the same call goes on."""


def printable(text: str) -> str:
    """The text with everything but letters, signs, spaces, tabs and line ends escaped.

    Names of a model come from anyone, and a terminal does what it is told.

    >>> printable("a \x1b[2J name")
    'a \\\\x1b[2J name'
    """
    if text.isprintable():
        return text
    with contextlib.suppress(UnicodeDecodeError, UnicodeEncodeError):  # of a file, where the locale has no such letters
        text = text.encode("utf-8", "surrogateescape").decode("utf-8")
    return "".join(
        letter if letter in "\n\t" or letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


_flag_of: Callable[[str, str], str] | None = None
_model_path: Callable[[], str] | None = None


def option(name: str, in_python: str = "") -> str:
    """An option's name in a message: its flag while a command runs, and as Python's callers write it otherwise. A
    command that has no such flag, but one that is called as in Python, is told that one.

    Args:
        name: of the option, without dashes before it.
        in_python: the name of the argument, where that is another.
    """
    flag = _flag_of(name, in_python) if _flag_of is not None else ""
    return flag or in_python or name.replace("-", "_")


def shapes_option(sizes: Mapping[str, Sequence[int | str]]) -> str:
    """How a caller states these sizes of inputs: with a flag for each input, or with one argument in Python.

    >>> shapes_option({"word": (1,), "pictures:0": (1, "N", "N", 3)})
    'shapes={"word": (1,), "pictures": (1, N, N, 3)}'
    """
    called = option("input_shape", "shapes")
    told = {name.removesuffix(":0"): list(map(str, given)) for name, given in sizes.items()}
    if called.startswith("-"):
        return " ".join(f"{called}={name}:{','.join(given)}" for name, given in told.items())
    pairs = [f'"{name}": ({", ".join(given)}{"," * (len(given) == 1)})' for name, given in told.items()]
    return f"{called}={{{', '.join(pairs)}}}"


def command_on_model(command: str, words: str = "") -> str:
    """A command to type for the model that a running command was given, whole and in backticks; where no model's path
    is known, words that name no path.

    Args:
        command: with {} for the path, what stands behind it being quoted as the shell takes it.
        words: for want of a path; by default the command's name and long flag, as ``option`` spells it.
    """
    path = _model_path() if _model_path is not None else ""
    if path or words:
        return f"`{command.replace('{}', quoted_path(path), 1)}`" if path else words
    name, *rest = command.split()[1:]
    flags = [word for word in rest if word[1:2] == "-"]
    is_typed = option("repair") != "repair"
    return " with ".join([name, *(flag if is_typed else flag.lstrip("-") for flag in flags)])


def spell_options(flag_of: Callable[[str, str], str], model_path: Callable[[], str]) -> None:
    """Has the command line say what an option's flag is, by its name and that in Python, and the path of the model that
    is worked on; "" where no command runs."""
    global _flag_of, _model_path
    _flag_of, _model_path = flag_of, model_path


def quoted(word: str, system: str = os.name) -> str:
    """A word of a command that is printed, for the shell of a system: Windows knows double quotes only.

    >>> quoted("my photos", "posix"), quoted("my photos", "nt")
    ("'my photos'", '"my photos"')
    >>> quoted("out\\\\net.pb", "nt")
    'out\\\\net.pb'
    """
    if system != "nt":
        import shlex  # which compiles an expression

        return shlex.quote(word)
    is_plain = word and all(letter.isalnum() or letter in "_-./\\:,=+@" for letter in word)
    return word if is_plain else '"' + word.replace('"', '\\"') + '"'


def quoted_path(path: str) -> str:
    """A path as an argument of a command that is printed: one that begins with a dash is no option.

    >>> quoted_path("-net.pb")
    './-net.pb'
    """
    return quoted(f"./{path}" if path.startswith("-") else path)


def new_folder(path: str) -> str:
    """The command that makes a folder, and those above it."""
    return f"mkdir {'' if os.name == 'nt' else '-p '}{quoted(path)}"


class PocketgraphError(Exception):
    """Base of every error that pocketgraph raises on purpose.

    ``str(error)`` is one line: ``[where: ]what[; hint]``. Line ends and characters that a terminal acts on are escaped.

    Args:
        what: what happened, as a sentence without a final stop.
        where: the file, node or option it happened at.
        hint: what to do next.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        what, where, hint = (printable(part).replace("\n", "\\n") for part in (what, where, hint))
        self.what, self.where, self.hint = what, where, hint
        text = f"{where}: {what}" if where else what
        super().__init__(f"{text.removesuffix('.')}; {hint}" if hint else text)


class UsageError(PocketgraphError):
    """The call itself was wrong: a bad flag, a missing argument, an unknown name on the command line."""

    exit_code = 2


class FormatError(PocketgraphError):
    """A file is not what it should be: truncated, corrupt, or of another kind."""


class GraphError(PocketgraphError):
    """A graph contradicts itself: a dangling input, a cycle, a duplicate or unknown name, an unknown op."""


class TransformError(PocketgraphError):
    """A rewriting rule was given a bad parameter or met a graph that it cannot rewrite."""


class FreezeError(PocketgraphError):
    """A graph cannot be frozen with the checkpoint and outputs given."""


class RunError(PocketgraphError):
    """A graph cannot be run with the feeds and fetches given."""


class DeadlineError(RunError):
    """A run took longer than it was allowed to; the message names the node that was reached."""


class MissingKernelError(RunError):
    """Ops that no engine can run; the message lists every one."""


class MissingExtraError(PocketgraphError):
    """An optional dependency is not installed; the message names the extra to install."""


SHORTEST = 3
"""Letters; what is shorter is inside of too many names to mean one of them."""
COMPARED = 1000
"""Names that are compared letter by letter; of more, those that share the most pairs of letters."""


def nearest(name: str, candidates: Iterable[str], count: int = 3) -> list[str]:
    """The candidates that look most like ``name``, best first, for "did you mean" hints."""
    import difflib

    pool = [str(candidate) for candidate in candidates]
    lowered = {candidate.lower(): candidate for candidate in pool}
    likely = lowered if len(lowered) <= COMPARED else _sharing_most(name.lower(), lowered)
    close = difflib.get_close_matches(name.lower(), likely, n=count, cutoff=0.55)
    ends = [candidate for candidate in pool if name.endswith(f"/{candidate}")]  # import/softmax for softmax
    inside = [candidate for candidate in pool if len(name) >= SHORTEST and name.lower() in candidate.lower()]
    inside.sort(key=len)
    return list(dict.fromkeys(ends + [lowered[match] for match in close] + inside[:count]))[:count]


def _sharing_most(name: str, candidates: Iterable[str]) -> list[str]:
    """The candidates of whose pairs of neighbouring letters the most are in ``name`` too."""
    import heapq

    pairs = set(map(str.__add__, name, name[1:]))
    return heapq.nlargest(
        COMPARED,
        candidates,
        lambda other: len(pairs.intersection(map(str.__add__, other, other[1:]))) / (len(other) + 1),
    )


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """A hint such as ``did you mean 'softmax' or 'softmax_1'?``, empty when nothing is near."""
    near = nearest(name, candidates)
    return f"did you mean {' or '.join(repr(n) for n in near)}?" if near else ""


def path_of(place: object, what: str = "a model") -> str:
    """A path as text.

    Args:
        place: the path, as a caller in Python gave it.
        what: it is of, for the message.

    Raises:
        UsageError: it is no path.
    """
    path = os.fspath(place) if isinstance(place, str | os.PathLike) else None
    if isinstance(path, str):
        return path
    hint = "give a str or pathlib.Path" + ("; pocketgraph.save(graph, 'graph.pb') writes a Graph" * (what == "a model"))
    raise UsageError(f"{what} is named by its path, not by {type(place).__name__}", hint=hint)
