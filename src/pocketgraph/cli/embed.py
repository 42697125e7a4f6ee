"""``pocketgraph embed``: photos as vectors."""

from __future__ import annotations

from typing import Any

import click

from pocketgraph.cli._data_options import say
from pocketgraph.cli._output import echo


@click.command("embed")
@click.argument("model")
@click.argument("photos")
@click.option("--output", "-o", required=True, help="The file of vectors, .npz: names, labels, vectors.")
@click.option(
    "--tensor",
    "--bottleneck_tensor",
    "--bottleneck-tensor",
    "tensor",
    help="Any tensor of the model; default: what its last layer with weights takes.",
)
@click.option("--preset", help="Size, scaling and layers of the model; `label_image --preset=list` shows them.")
@click.option("--input_layer", "--input-layer", help="The node that takes the picture.")
@click.option("--input_width", "--input-width", "width", type=click.IntRange(1, 1 << 14))
@click.option("--input_height", "--input-height", "height", type=click.IntRange(1, 1 << 14))
@click.option("--input_mean", "--input-mean", "mean", type=float, help="Subtract this from each pixel value.")
@click.option("--input_std", "--input-std", "std", type=float, help="Then divide by this.")
@click.option("--threads", type=click.IntRange(1), help="How many threads to compute with.")
def command(model: str, photos: str, output: str, tensor: str | None, **how: Any) -> None:
    """Write what MODEL makes of each of PHOTOS, a folder of pictures or of folders of pictures, at one of its tensors.

    \b
      pocketgraph embed mobilenet.pb flowers/ -o flowers.npz
      pocketgraph nearest flowers.npz --model=mobilenet.pb photo.jpg
    """
    from pocketgraph.apps.embeddings import embed
    from pocketgraph.cli._progress import progress_bar
    from pocketgraph.formats import load
    from pocketgraph.formats.files import check_place

    check_place(output)
    with progress_bar() as tell:
        made = embed(
            load(model), photos, tensor=tensor, progress=lambda done, of: tell("photos", done, of), notify=say, **how
        )
    made.save(output)
    count, size = made.vectors.shape
    echo(f"{output}: {count} vectors of {size} numbers, '{made.tensor}'; next:")
    echo(f"  pocketgraph nearest {output} --model={model} PHOTO")
