"""The pages that are made from the code: a page a command, from click; the Python interface, from docstrings."""

from __future__ import annotations

import inspect
import re
import textwrap

import click

from pocketgraph.cli.main import ALIASES, COMMANDS, ROAD, Commands
from pocketgraph.cli.shared.options import distinct_names

PYTHON = {
    "Look": ("identify", "load", "summarize", "view", "plan"),
    "Freeze and change": ("freeze", "transform", "TransformGraph", "save"),
    "Quantize": ("quantize", "QuantizedModel"),
    "Judge": ("verify", "evaluate", "benchmark"),
    "Ship": ("ship", "export"),
    "Run": ("Session", "InferenceInterface", "label_image", "kernel"),
    "Train": (
        "gradients", "trainable", "add_loss", "minimize", "add_regularization", "add_schedule", "add_signatures",
        "train",
    ),
    "Values": ("Graph", "Node", "Tensor", "PocketgraphError"),
}  # fmt: skip
"""What the Python page tells of, under which heading; names that are missing here come at its end."""

NOT_RUN = {
    "completion": "it changes the settings of a shell",
    "dataset label": "it needs a person who labels",
    "dataset export": "it needs a person who has labelled",
    "live": "it needs a camera",
    "federated": "it needs Flower",
    "import_pb_to_tensorboard": "it needs TensorBoard",
    "model_explorer": "it needs Model Explorer",
}
"""Why no test runs the commands that the help of a command shows."""


def command_pages() -> dict[str, str]:
    """The text of each command's page, and of their list, by file name."""
    others = ", ".join(f"`{short}` is `{name}`" for short, name in ALIASES.items())
    index = [
        "# Commands",
        "",
        "In the order in which a model meets them. In names, dashes and underscores are the same.",
        f"Also: {others}.",
    ]
    for heading, commands in ROAD.items():
        index += ["", f"## {heading}", "", "| command | does what |", "|---|---|"]
        index += [f"| [`{name}`]({name}.md) | {escaped(summary)} |" for name, summary in commands.items()]
    index += ["", "```{toctree}", ":hidden:", ""]
    return {"index.md": "\n".join([*index, *COMMANDS, "```", ""]), **{f"{name}.md": page(name) for name in COMMANDS}}


def page(name: str) -> str:
    """The page of one command; a group's commands follow each other."""
    command = Commands().get_command(click.Context(click.Command("pocketgraph")), name)
    assert command is not None
    parts = [f"# {name}", ""]
    if isinstance(command, click.Group):
        parts += told(command.help or "", NOT_RUN.get(name, ""))
        for part in command.commands.values():
            parts += [
                f"## {name} {part.name}",
                "",
                *told(part.help or "", NOT_RUN.get(name) or NOT_RUN.get(f"{name} {part.name}", "")),
                *options(part, f"{name} {part.name}"),
            ]
    else:
        parts += [*told(command.help or "", NOT_RUN.get(name, "")), *options(command, name)]
    return "\n".join(parts)


def told(text: str, why_not: str = "") -> list[str]:
    """A command's help as Markdown: what click leaves as it is (``\\b``) is a block, of commands or to be read."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if not paragraph.startswith("\b"):
            lines += [escaped(" ".join(paragraph.split())), ""]
            continue
        block = textwrap.dedent(paragraph.removeprefix("\b").strip("\n"))
        first, _, rest = block.partition("\n")
        if first.endswith(":") and "pocketgraph " in rest:
            lines += [escaped(first), ""]
            block = textwrap.dedent(rest)
        commands = block.startswith("pocketgraph")
        lines += [f"<!-- not run: {why_not} -->", ""] if commands and why_not else []
        lines += [f"```{'sh' if commands else 'text'}", block, "```", ""]
    return lines


def options(command: click.Command, name: str) -> list[str]:
    """How the command is called, and a list of its options."""
    context = click.Context(command, info_name=f"pocketgraph {name}")
    usage = f"pocketgraph {name} {' '.join(command.collect_usage_pieces(context))}"
    shown = [p for p in command.get_params(context) if isinstance(p, click.Option) and not p.hidden]
    return ["```text", usage, "```", "", *(option(parameter, context) for parameter in shown), ""]


def option(parameter: click.Option, context: click.Context) -> str:
    """A line of the list: names (of dashes and underscores only the latter), what it takes and means."""
    kind = "" if parameter.is_flag else f" {parameter.make_metavar(context)}"
    spelled = ", ".join(f"`{name}{kind}`" for name in distinct_names(parameter))
    default = parameter.get_help_extra(context).get("default", "")
    says = [escaped(" ".join((parameter.help or "").split())), "Required." if parameter.required else ""]
    return " ".join([f"- {spelled}:", *filter(None, says), f"Default: `{default}`." if default else ""]).rstrip()


def escaped(text: str) -> str:
    """Text in which only backticks mean something, as Markdown."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([\\*_<>\[\]#])", r"\\\1", p) for p in parts).replace(
        "|", "\\|"
    )


def python_page() -> str:
    """The page of the Python interface, for Sphinx to fill from docstrings."""
    import pocketgraph

    named = {name for names in PYTHON.values() for name in names}
    rest = sorted(set(pocketgraph.__all__) - named - {"__version__", "formats"})
    lines = ["# Python reference", "", "All public names of `pocketgraph`, in the order in which a model meets them.",
             "[From Python](from-python.md) shows how they go together.", "",
             "```{currentmodule} pocketgraph", "```", ""]  # fmt: skip
    for heading, names in {**PYTHON, "More": rest}.items():
        if not names:
            continue
        lines += [f"## {heading}", ""]
        for name in names:
            kind = "autoclass" if isinstance(getattr(pocketgraph, name), type) else "autofunction"
            members = [":members:", ""] if kind == "autoclass" else []
            lines += [
                "```{eval-rst}",
                f".. {kind}:: pocketgraph.{name}",
                *(f"   {member}" for member in members),
                "```",
                "",
            ]
    return "\n".join(lines)
