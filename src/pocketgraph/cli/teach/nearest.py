"""``pocketgraph nearest``: the photos most like others, and their classes, without training."""

from __future__ import annotations

from typing import Any

import click

from pocketgraph.cli.shared.data_options import json_option
from pocketgraph.cli.shared.output import echo, echo_json, one_line
from pocketgraph.errors import UsageError
from pocketgraph.pages.quantities import counted


@click.command("nearest")
@click.argument("known")
@click.argument("photos", nargs=-1)
@click.option("--model", help="The model that the vectors are of; needed for photos.")
@click.option("--vectors", help="Ask for the vectors of this file instead of photos.")
@click.option("--count", "-k", type=click.IntRange(1), default=5, show_default=True, help="How many to name and ask.")
@json_option
def command(known: str, photos: tuple[str, ...], model: str | None, vectors: str | None, **how: Any) -> None:
    """Name those of the vectors in KNOWN (of embed) that are nearest to PHOTOS, with the cosines between them.

    Where the known photos have labels (their folders), the nearest ones vote, each with its cosine: a classifier of new
    classes without training. It is judged where --vectors has labels too.

    \b
      pocketgraph nearest flowers.npz --model=mobilenet.pb photo.jpg
      pocketgraph nearest flowers.npz --vectors=others.npz --json
    """
    from pocketgraph.apps.embeddings import embed, read_embeddings, require_alike
    from pocketgraph.apps.patterns.neighbours import Neighbours
    from pocketgraph.freezing.ready_models import read_model

    if bool(photos) == bool(vectors):
        raise UsageError("pass photos with --model, or a file of vectors with --vectors")
    table = read_embeddings(known)
    if vectors:
        asked = read_embeddings(vectors)
    else:
        if not model:
            raise UsageError("--model is needed for photos", hint="pass the model that the vectors are of")
        asked = embed(read_model(model), photos, tensor=table.tensor, **table.how)
    require_alike(table, asked, vectors or "")
    labels = Neighbours(table.vectors, table.labels)
    places, cosines = labels.nearest(asked.vectors, how["count"])
    entries: list[dict[str, Any]] = []
    for row, name in enumerate(asked.names):
        near = [
            {"name": table.names[place], "label": table.labels[place], "cosine": round(float(cosine), 6)}
            for place, cosine in zip(places[row], cosines[row], strict=True)
        ]
        votes = [
            {"label": label, "share": round(share, 6)}
            for label, share in labels.classify(asked.vectors[row], how["count"])
            if label
        ]
        entries.append({"name": name, "label": asked.labels[row], "nearest": near, "votes": votes})
    judged = [entry for entry in entries if entry["label"] in table.labels and entry["label"] and entry["votes"]]
    right = sum(entry["votes"][0]["label"] == entry["label"] for entry in judged)
    if how["as_json"]:
        echo_json({"photos": entries, "judged": len(judged), "right": right})
        return
    for entry in entries:
        voted = entry["votes"][:1]
        echo(one_line(entry["name"]) + (f": {voted[0]['label']} ({100 * voted[0]['share']:.0f} %)" if voted else ""))
        for other in entry["nearest"]:
            echo(f"  {other['cosine']:.4f}  {one_line(other['name'])}")
    if judged:
        echo(f"{right} of {counted(len(judged), 'label')} right ({100 * right / len(judged):.1f} %)")
