"""``pocketgraph convert``: a model file in another form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pocketgraph.cli.shared.options import names
from pocketgraph.cli.shared.output import echo
from pocketgraph.errors import PocketgraphError

if TYPE_CHECKING:
    from pocketgraph.graph import Graph, Shape

TARGET_FORMS = ("graphdef", "text", "memmapped", "saved_model", "meta", "checkpoint")


@click.command("convert")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--to", type=click.Choice(TARGET_FORMS), help="The form, where OUT's suffix does not say it.")
@click.option("--tags", help="Which graph of a SavedModel, such as serve or serve,gpu.")
@click.option("--signature", help="Which signature of a SavedModel or MetaGraphDef.")
@click.option("--inputs", help="Inputs of the signature that a SavedModel gets when IN has none.")
@click.option("--outputs", help="Outputs of that signature.")
@click.option(
    "--min_conversion_tensor_size", "min_size", type=int,
    help="Smallest constant, in bytes, that gets a region of its own in a memory-mapped package.",
)  # fmt: skip
@click.option("--shapes", is_flag=True, help="Write inferred shapes into the nodes, where Netron shows them.")
def command(
    source: str, target: str, to: str | None, inputs: str | None, outputs: str | None, shapes: bool, **how: Any
) -> None:
    """Write the model or checkpoint IN as OUT, in the form that OUT's suffix says.

    .pb is a GraphDef, .pbtxt its text form, .mmap a memory-mapped package, .meta a MetaGraphDef; a name without a
    suffix is the directory of a SavedModel. A checkpoint, also of the old form V1, becomes a V2 checkpoint of the
    prefix OUT.

    \b
      pocketgraph convert frozen.pb frozen.pbtxt
      pocketgraph convert frozen.pb saved_model_dir --inputs=x --outputs=softmax
      pocketgraph convert frozen.pb shaped.pb --shapes
      pocketgraph convert training/model.ckpt-1000 new.ckpt-1000 --to=checkpoint
    """
    from pocketgraph.formats import conversion
    from pocketgraph.inspect.output_shapes import with_shapes

    done = conversion.convert(
        source, target, to or "", inputs=names(inputs), outputs=names(outputs), shapes_of=_shapes,
        with_shapes=with_shapes if shapes else None, **how,
    )  # fmt: skip
    echo(f"{source}: {done.source}; {target}: written as {done.form}")
    if done.left_out:
        echo(f"left out: {'; '.join(done.left_out)}", err=True)


def _shapes(graph: Graph) -> dict[str, Shape]:
    """The shapes of the tensors in the graph's signatures, as far as they can be inferred."""
    from pocketgraph.formats.meta_graph_writer import signatures_of
    from pocketgraph.kernels.shapes import infer

    wanted = [t for given in signatures_of(graph).values() for t in (*given.inputs.values(), *given.outputs.values())]
    try:
        inferred = infer(graph)
        return {tensor: inferred.shape(tensor) for tensor in wanted}
    except PocketgraphError:
        return {}  # the graph is written all the same, with the shapes that it states itself
