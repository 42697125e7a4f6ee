"""Makes a graph's Saver save and restore new variables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pocketgraph.errors import TransformError
from pocketgraph.graph import Node, Tensor, const
from pocketgraph.graph.dtype import FLOAT, STRING
from pocketgraph.transforms.parts.constant_folding.flow import FlowStep


def saved_too(steps: dict[str, FlowStep], variables: Sequence[str]) -> None:
    """Adds float variables to the one SaveV2 among the steps, if there is one, and nodes that restore them.

    Raises:
        TransformError: there are several SaveV2, or there is no restore_all beside it.
    """
    saves = [name for name, step in steps.items() if step.node.op == "SaveV2"]
    if not saves:
        return
    if len(saves) > 1:
        raise TransformError(f"Found multiple SaveV2 nodes: '{saves[0]}' and '{saves[1]}'")
    save = steps.pop(saves[0])
    prefix = save.node.name.rpartition("/")[0]
    waiting = steps.get(f"{prefix}/restore_all")
    if waiting is None:
        raise TransformError(f"Could not find the restore_all node '{prefix}/restore_all' of '{save.node.name}'")
    for count, variable in enumerate(variables):
        waiting.control.add(_restored(steps, save, prefix, variable, 2 * count))
    for place, values in ((1, [name.encode() for name in variables]), (2, [b""] * len(variables))):
        listed = steps[save.data[place][0]]
        longer = [*listed.node.tensor.numpy().ravel().tolist(), *values]
        listed.node = listed.node.with_attrs(value=Tensor.from_numpy(np.array(longer, dtype=object), STRING))
    dtypes = save.node.attr("dtypes", ())
    save.node = save.node.with_attrs(dtypes=(*dtypes, *[FLOAT] * len(variables))).replace(device="")
    save.data += [(name, 0) for name in variables]
    steps[save.node.name] = save


def _restored(steps: dict[str, FlowStep], save: FlowStep, prefix: str, variable: str, count: int) -> str:
    """Adds the nodes that restore one variable; gives the name of the last."""
    scope = f"{prefix}/RestoreV2/_{count}_qt"
    texts = ((f"{scope}/tensor_names", variable.encode()), (f"{scope}/shape_and_slices", b""))
    parts = [const(name, [text], STRING) for name, text in texts]
    restore = Node(scope, "RestoreV2", (), {"dtypes": (FLOAT,)})
    assign = Node(
        f"{prefix}/Assign/_{count + 1}_qt", "Assign", (), {"T": FLOAT, "validate_shape": True, "use_locking": True}
    )
    steps.update({part.name: FlowStep(part, [], set()) for part in parts})
    steps[restore.name] = FlowStep(restore, [save.data[0], *((part.name, 0) for part in parts)], set())
    steps[assign.name] = FlowStep(assign, [(variable, 0), (restore.name, 0)], set())
    return assign.name
