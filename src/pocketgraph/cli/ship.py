"""``pocketgraph ship``: from a trained model and data to the file that ships, with a verdict."""

from __future__ import annotations

from typing import Any

import click

from pocketgraph.cli.shared.data_options import feeds, sample_options, say, shape_option, shapes_of, threads_option
from pocketgraph.cli.shared.options import flag_bool, labels_option, names, signature_option
from pocketgraph.cli.shared.output import echo


@click.command("ship")
@click.argument("model")
@click.option("--data", metavar="DIR|NPZ|LIST", help="Realistic inputs; some calibrate, the others judge. 100 do.")
@click.option("-o", "--output", "folder", required=True, metavar="DIR", help="The folder for everything.")
@labels_option()
@click.option(
    "--target", type=click.Choice(["android", "ios", "pi", "microcontroller", "web"]), default="android",
    show_default=True, help="Where it goes: on which devices its time is estimated.",
)  # fmt: skip
@click.option("--outputs", default="", help="Tensors to compute, by commas; default: the likeliest output.")
@click.option("--inputs", default="", help="Tensors that the app feeds, by commas; default: the model's own.")
@shape_option
@click.option(
    "--max_accuracy_drop", type=float, metavar="POINTS",
    help="What may be lost, in per cent: of right answers (default 2), or where the data tell no classes of answers "
    "that stay the same (default 5).",
)  # fmt: skip
@threads_option
@signature_option
@flag_bool("--allow_training_batch_norm", help="Ship batch norms that use the statistics of the batch.")
@sample_options
def command(model: str, data: str | None, folder: str, outputs: str, **how: Any) -> None:
    """Make the file that ships of MODEL: a graph, or the directory of a SavedModel or training.

    Freezes, repairs, strips and folds; then tries eight bits, and weights alone, and floats, until a form keeps what
    may be lost on samples that it was not made with. Everything goes into one folder, ship.html says what it costs
    and what to do next. Made again, an interrupted call goes on.

    \b
      pocketgraph ship frozen.pb --data=photos/ -o out/
      pocketgraph ship training/ --data=photos/ --labels=labels.txt --max_accuracy_drop=0.5 -o out/
    """
    from pocketgraph.apps.shipping.ship import ship
    from pocketgraph.apps.shipping.shipment import MODEL
    from pocketgraph.apps.shipping.shipping_page import cost
    from pocketgraph.cli.shared.progress import SHIPPING, SHIPPING_UNSEEN, progress_bar

    stages, first = (SHIPPING_UNSEEN, 0.9) if data is None else (SHIPPING, 0.6)
    with progress_bar(stages, first) as tell:
        found = ship(
            model, folder, data, outputs=names(outputs) or None, inputs=names(how.pop("inputs")) or None,
            shapes=shapes_of(how.pop("input_shape")), feeds=feeds(how.pop("feed")), progress=tell, notify=say, **how,
        )  # fmt: skip
    if found.is_resumed:
        say(f"{folder} has it already, from an earlier call")
    for each in found.tried:
        echo(f"{found.outcome(each):<5}  {each.form}: {each.words}")
    for text in found.devices:
        echo(f"device {text}")
    for text in found.app:
        echo(f"app    {text}")
    for text in found.unknown:
        echo(f"not known: {text}")
    echo(cost(found))
    echo(found.verdict)
    ships = "" if found.doubt else f"{MODEL} ships, "
    echo(f"written: {folder}: {', '.join(found.files)}; {ships}ship.html says all")
    echo("next:")
    for line in found.commands:
        echo(f"  {line}")
