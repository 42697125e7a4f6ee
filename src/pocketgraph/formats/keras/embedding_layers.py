"""Tables of a vector for each number, read in one direction or in both."""

from __future__ import annotations

from pocketgraph.formats.keras.activation_functions import scaled
from pocketgraph.formats.keras.layer_writer import KerasTensor, LayerWriter, Rule, contraction
from pocketgraph.graph.dtype import INT32


def embedding(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """The row of a table for each number."""
    table = writer.weight("embeddings")
    if value.dtype.is_floating:
        value = writer.add("Cast", value, DstT=INT32)
    rows = writer.add("GatherV2", table, value, writer.const(0, "axis"), dims=(*value.dims, table.dims[-1]))
    if not writer.config.get("mask_zero", False):
        return rows
    return rows._replace(mask=writer.add("NotEqual", value, writer.const(0, "padding", value.dtype), name="mask"))


def reversible_embedding(writer: LayerWriter, value: KerasTensor) -> KerasTensor:
    """A row of a table for each number; called with ``reverse=True`` a score for each row of it, or of a second one."""
    if not (writer.named.get("reverse") or True in writer.given[1:]):
        return embedding(writer, value)
    writer.expect(reverse_dtype=None)
    is_tied = writer.config.get("tie_weights", True)
    table = writer.weight("embeddings" if is_tied else "reverse_embeddings")
    made = contraction(writer, "...c,vc->...v" if is_tied else "...c,cv->...v", value, table)
    limit = writer.config.get("logit_soft_cap")
    return made if limit is None else scaled(writer, writer.add("Tanh", scaled(writer, made, 1 / limit)), limit)


RULES: dict[str, Rule] = {"Embedding": embedding, "ReversibleEmbedding": reversible_embedding}
