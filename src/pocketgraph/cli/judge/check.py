"""``pocketgraph check``: whether targets take a model, and which nodes stand in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.data_options import fixed_shape_option, shapes_of
from pocketgraph.cli.shared.options import names
from pocketgraph.cli.shared.output import echo, echo_json
from pocketgraph.pages.quantities import counted, listed

if TYPE_CHECKING:
    from pocketgraph.exporting.target_support import Support


@click.command("check")
@click.argument("model")
@click.option(
    "--target", "targets", default="tflite", show_default=True,
    help="Comma list: a target of `export`; tfmobile: TensorFlow Mobile's default library; or android, ios, pi, web.",
)  # fmt: skip
@click.option("--inputs", default="", help="Comma list of tensors to feed. Default: as for export.")
@click.option("--outputs", default="", help="Comma list of tensors to compute. Default: as for export.")
@fixed_shape_option
@click.option("--json", "as_json", is_flag=True, help="Print every node with yes or no, as JSON.")
def command(model: str, targets: str, inputs: str, outputs: str, input_shape: tuple[str, ...], as_json: bool) -> int:
    """Say whether MODEL can be exported, and what stands in the way; leaves with 1 when something does.

    The export is tried on made-up inputs and nothing of it is kept, so that the answer is that of `export`. For
    tfmobile, which nothing is exported to, each node is looked up in the list of what its builds link.

    \b
      pocketgraph check frozen.pb
      pocketgraph check frozen.pb --target=tflite,onnx,c --json
      pocketgraph check frozen.pb --target=tfmobile,android,ios
    """
    from pocketgraph.exporting.target_support import support, targets_of

    asked = {name: targets_of(name) for name in names(targets)}
    found = {
        target: support(
            model, target, inputs=names(inputs) or None, outputs=names(outputs) or None, shapes=shapes_of(input_shape)
        )
        for target in dict.fromkeys(target for chosen in asked.values() for target in chosen)
    }
    answers = {name: any(found[target].is_complete for target in chosen) for name, chosen in asked.items()}
    if as_json:
        echo_json([as_dict(one) for one in found.values()])
    else:
        for one in found.values():
            show(one)
        for name, chosen in asked.items():
            if name not in found:
                echo(f"{name}: {'yes' if answers[name] else 'no'}, by {' or '.join(chosen)}")
    return int(not all(answers.values()))


def as_dict(found: Support) -> dict[str, Any]:
    """The answer for programs; of a model that is refused as a whole, no node is judged."""
    hints = {name: obstacle.hint for obstacle in found.obstacles for name in obstacle.nodes}
    ops = {**found.nodes, **{name: found.nodes.get(name, "") for name in found.reasons}}
    return {
        "target": found.target,
        "supported": found.is_complete,
        "refusal": found.refusal,
        "hint": found.hint,
        "nodes": [
            {
                "name": name,
                "op": op,
                "supported": None if found.refusal else name not in found.reasons,
                "reason": found.reasons.get(name, ""),
                "hint": hints.get(name, ""),
            }
            for name, op in ops.items()
        ],
    }


def show(found: Support) -> None:
    """Prints the verdict and a line for each group of nodes."""
    if found.is_complete:
        echo(f"{found.target}: yes, all of {counted(len(found.nodes), 'node')}")
    elif found.refusal:
        echo(f"{found.target}: no; {found.refusal}")
    else:
        lacking = sum(bool(name) for name in found.reasons)  # "" is the graph as a whole
        some = (
            f", {lacking:,} of {counted(len(found.nodes), 'node')} {'stands' if lacking == 1 else 'stand'} in the way"
        )
        echo(f"{found.target}: no{some if lacking else ''}")
    for obstacle in found.obstacles:
        nodes = f"{obstacle.op} x {len(obstacle.nodes)} ({listed(obstacle.nodes, 3, quoted=True)})"  # --json lists all
        help_text = f"; {obstacle.hint}" if obstacle.hint else ""
        echo(f"  {nodes if obstacle.op else 'the graph'}: {obstacle.reason}{help_text}")
    if found.hint:
        echo(f"  {found.hint}")
