"""``pocketgraph federated``: one graph trained by many, whose data stay where they are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from pocketgraph.cli.shared.options import names, seed_option, together
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import UsageError
from pocketgraph.pages.quantities import counted

if TYPE_CHECKING:
    from pocketgraph.apps.federated.averaging import Round
    from pocketgraph.apps.federated.tool import Averaged
    from pocketgraph.graph import Graph


@click.group("federated", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Train one graph on data of many that stay where they are: federated averaging, on Flower (extra `federated`).

    \b
      pocketgraph federated simulate training/ clients/ -o averaged.npz
      pocketgraph federated server training/ --certificates=ca.pem,server.pem,server.key -o averaged.npz
      pocketgraph federated client training/ --data=mine.npz --server=HOST:8080 --certificate=ca.pem
    """


round_options = together(
    click.option(
        "--rounds", type=click.IntRange(1), default=10, show_default=True, help="How often they learn and are averaged."
    ),
    click.option(
        "--share", type=click.FloatRange(0, 1, min_open=True), default=1.0, show_default=True,
        help="Of the clients, how many are asked in a round.",
    ),
    seed_option("Of which clients, and samples"),
    click.option(
        "--output", "-o", required=True,
        help="The averaged variables, .npz; or a frozen graph with them, .pb, with --outputs.",
    ),
    click.option("--outputs", help="Of the frozen graph; default: those of the signature infer."),
)  # fmt: skip
local_options = together(
    click.option(
        "--epochs", type=click.IntRange(1), default=1, show_default=True,
        help="How often a client goes over its data in a round.",
    ),
    click.option(
        "--batch_size", type=click.IntRange(1), default=32, show_default=True, help="Samples of a training step."
    ),
)  # fmt: skip


@command.command("simulate")
@click.argument("training")
@click.argument("data")
@round_options
@local_options
def simulate(training: str, data: str, rounds: int, share: float, seed: int, output: str, outputs: str | None,
             epochs: int, batch_size: int) -> None:  # fmt: skip
    """Average what clients learn in this process. TRAINING is a training graph; DATA a folder, one .npz a client.

    \b
      pocketgraph federated simulate training/ clients/ -o averaged.npz
    """
    from pocketgraph.apps.federated.participant import LocalTraining
    from pocketgraph.apps.federated.tool import Rounds, simulate
    from pocketgraph.formats import load

    if not os.path.isdir(data):
        raise UsageError("there is no such folder", where=data, hint="one .npz a client, arrays by the inputs' names")
    files = {
        name.removesuffix(".npz"): os.path.join(data, name)
        for name in sorted(os.listdir(data))
        if name.endswith(".npz")
    }
    if not files:
        raise UsageError("there is no .npz file", where=data, hint="one a client, arrays by the inputs' names")
    graph = load(training)
    _check_output(graph, output, outputs)
    how = LocalTraining(epochs, batch_size, seed)
    made = simulate(graph, files, Rounds(rounds, len(files), share, seed), how, _tell)
    _write(graph, made, output, outputs)


@command.command("server")
@click.argument("training")
@round_options
@click.option(
    "--clients", type=click.IntRange(1), default=2, show_default=True, help="Wait for so many before the first round."
)
@click.option("--address", default="127.0.0.1:8080", show_default=True, help="HOST:PORT to listen on.")
@click.option("--certificates", help="PEM files by commas: of the authority, of this server, its key.")
@click.option("--insecure", is_flag=True, help="Without TLS, for trials on one machine.")
@click.option(
    "--patience",
    type=click.FloatRange(1),
    default=600.0,
    show_default=True,
    help="Seconds to wait for clients, and for a round.",
)
def server(training: str, rounds: int, share: float, seed: int, output: str, outputs: str | None, clients: int,
           address: str, certificates: str | None, insecure: bool, patience: float) -> None:  # fmt: skip
    """Wait for clients, and average what they learn. TRAINING is the training graph that they have too.

    \b
      pocketgraph federated server training/ --certificates=ca.pem,server.pem,server.key -o averaged.npz
    """
    from pocketgraph.apps.federated.tool import Rounds, serve
    from pocketgraph.formats import load

    graph = load(training)
    _check_output(graph, output, outputs)
    made = serve(
        graph, address, names(certificates), insecure=insecure, rounds=Rounds(rounds, clients, share, seed, patience),
        on_round=_tell,
    )  # fmt: skip
    _write(graph, made, output, outputs)


@command.command("client")
@click.argument("training")
@click.option("--data", required=True, help="Arrays by the inputs' names, .npz; they stay here.")
@click.option("--server", "address", default="127.0.0.1:8080", show_default=True, help="HOST:PORT of the server.")
@click.option("--certificate", default="", help="Of the server's authority, a PEM file.")
@click.option("--insecure", is_flag=True, help="Without TLS, for trials on one machine.")
@click.option("--name", default="", help="What the server calls this client; default: machine and process.")
@click.option(
    "--patience", type=click.FloatRange(0), default=60.0, show_default=True, help="Seconds to try to reach the server."
)
@seed_option("Of the order of samples")
@local_options
def client(training: str, data: str, address: str, certificate: str, insecure: bool, name: str, patience: float,
           seed: int, epochs: int, batch_size: int) -> None:  # fmt: skip
    """Train TRAINING on one's own data whenever the server asks, until it is done.

    \b
      pocketgraph federated client training/ --data=mine.npz --server=HOST:8080 --certificate=ca.pem
    """
    from pocketgraph.apps.federated.participant import LocalTraining
    from pocketgraph.apps.federated.tool import take_part
    from pocketgraph.formats import load

    count = take_part(
        load(training), data, address, certificate, insecure=insecure, name=name,
        how=LocalTraining(epochs, batch_size, seed), patience=patience,
    )  # fmt: skip
    echo(f"took part in {counted(count, 'round')}")


def _tell(finished: Round) -> None:
    """A line a round, and one for each client that was left out."""
    samples = sum(finished.clients.values())
    echo(
        f"round {finished.number}: {counted(len(finished.clients), 'client')}, {counted(samples, 'sample')}, "
        f"loss {finished.loss:.6g}"
    )
    for name, why in finished.left_out.items():
        echo(f"warning: round {finished.number} leaves out {name}: {why}", err=True)


def _check_output(graph: Graph, output: str, outputs: str | None) -> None:
    """Raises UsageError when the output cannot be written."""
    from pocketgraph.formats.files import check_place

    check_place(output)
    if not output.endswith((".npz", ".pb")):
        raise UsageError(f"'{output}' is neither .npz nor .pb", hint="-o averaged.npz or -o averaged.pb")
    if output.endswith(".pb") and not outputs and "infer" not in graph.signatures:
        raise UsageError("it is not clear what the frozen graph shall compute", hint="pass --outputs")


def _write(graph: Graph, made: Averaged, output: str, outputs: str | None) -> None:
    """The averaged variables, or the graph frozen with them."""
    import io

    import numpy as np

    from pocketgraph.formats import save
    from pocketgraph.formats.files import write_atomically
    from pocketgraph.freezing import freeze
    from pocketgraph.graph import Tensor

    if output.endswith(".npz"):
        content = io.BytesIO()
        np.savez(content, **made.variables)  # type: ignore[arg-type]
        write_atomically(output, content.getvalue())
    else:
        values = {name: Tensor.from_numpy(array) for name, array in made.variables.items()}
        wanted = names(outputs) or list(graph.signatures["infer"].outputs.values())
        save(freeze(graph.replace(signatures={}), wanted, values), output)
    echo(f"{output}: {counted(len(made.variables), 'variable')}, the average of {counted(len(made.rounds), 'round')}")
