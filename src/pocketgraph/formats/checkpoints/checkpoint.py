"""Opens a checkpoint of either form."""

from __future__ import annotations

import os

from pocketgraph.formats.checkpoints.checkpoint_base import Checkpoint
from pocketgraph.formats.checkpoints.checkpoint_state import find_prefix


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The tensors of a checkpoint of either form by name; nothing but its index is read.

    Args:
        path: what people have at hand: the prefix (``model.ckpt-1000``), its ``.index`` or a ``.data-…`` file, the
            file or one of the shards of the older V1 form, the text file ``checkpoint``, or the directory that holds
            them (the latest checkpoint in it).

    Raises:
        FormatError: there is no such checkpoint, or its index is damaged.
    """
    prefix = find_prefix(path)
    if os.path.isfile(prefix + ".index"):
        from pocketgraph.formats.checkpoints import checkpoint_v2

        return checkpoint_v2.CheckpointV2(prefix)
    from pocketgraph.formats.checkpoints import checkpoint_v1

    return checkpoint_v1.CheckpointV1(prefix)
