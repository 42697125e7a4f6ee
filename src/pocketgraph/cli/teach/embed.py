"""``pocketgraph embed``: photos as vectors."""

from __future__ import annotations

import os
from typing import Any

import click

from pocketgraph.cli.shared.data_options import cluster_option, picture_model_options, say
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import quoted, quoted_path
from pocketgraph.pages.quantities import counted


@click.command("embed")
@click.argument("model")
@click.argument("photos")
@click.option("--output", "-o", required=True, help="The file of vectors, .npz: names, labels, vectors.")
@click.option(
    "--tensor",
    "--bottleneck_tensor",
    "tensor",
    help="Any tensor of the model; default: what its last layer with weights takes.",
)
@cluster_option
@picture_model_options
def command(
    model: str, photos: str, output: str, tensor: str | None, cluster_address: str, **how: Any
) -> None:  # fmt: skip
    """Write what MODEL makes of each of PHOTOS, a folder of pictures or of folders of pictures, at one of its tensors.

    \b
      pocketgraph embed mobilenet.pb flowers/ -o flowers.npz
      pocketgraph nearest flowers.npz --model=mobilenet.pb photo.jpg
    """
    from pocketgraph.apps.embeddings import embed
    from pocketgraph.cli.shared.progress import progress_bar
    from pocketgraph.cluster import connected
    from pocketgraph.formats.files import check_place
    from pocketgraph.freezing.ready_models import read_model

    check_place(output)
    with connected(cluster_address), progress_bar() as tell:
        made = embed(
            read_model(model, notify=say), photos, tensor=tensor,
            progress=lambda done, of: tell("photos", done, of), notify=say, **how,
        )  # fmt: skip
    made.save(output)
    count, size = made.vectors.shape
    echo(f"{output}: {counted(count, 'vector')} of {counted(size, 'number')}, '{made.tensor}'; next:")
    photo = os.path.join(photos, made.names[0])
    echo(f"  pocketgraph nearest {quoted_path(output)} --model={quoted(model)} {quoted(photo)}")
