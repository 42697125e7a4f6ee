"""fold_constants, alone and in the usual chain, against what the original tool made of the shared models."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from oracle_compare import assert_same_as_original, model_graph, models, records
from pocketgraph.errors import PocketgraphError
from pocketgraph.transforms import transform
from support import needs_shared

ALONE = ["fold_constants"]
NORMS = ["strip_unused_nodes", "fold_constants(ignore_errors=true)", "fold_batch_norms", "fold_old_batch_norms"]
ROUNDED = [*NORMS, "round_weights(num_steps=256)"]


@needs_shared
@pytest.mark.parametrize("model", models())
def test_a_model_comes_out_as_the_original_made_it(model: str) -> None:
    def wanted(transforms: Sequence[str]) -> bool:
        return transforms in (ALONE, NORMS, ROUNDED)

    found = list(records(model, wanted))
    assert len(found) == 3
    for record in found:
        arguments = model_graph(model), record["transforms"], record["inputs"], record["outputs"]
        if not record["ok"]:
            with pytest.raises(PocketgraphError):
                transform(*arguments, compat="original")
        else:
            assert_same_as_original(transform(*arguments, compat="original"), record)
