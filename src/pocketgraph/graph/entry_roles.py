"""Which outputs are the next states of a recurrent network, by their names."""

import re
from collections.abc import Iterable, Sequence

_STATE = re.compile(r"(?:^|[/_])(state|hidden|memory)(?:$|[/_\d])", re.I)


def state_ends(placeholders: Iterable[str], ends: Sequence[str]) -> list[str]:
    """The ends that give the next states of those that placeholders take; empty where there is not one for each.

    A network that goes on from run to run takes ``previous_state`` and gives ``new_state``: without that it would
    forget.

    Args:
        placeholders: the names of the model's inputs.
        ends: the names of what it could give.
    """
    taken = sorted(found[1].lower() for name in placeholders if (found := _STATE.search(name)))
    given = [(found[1].lower(), name) for name in ends if (found := _STATE.search(name))]
    return [name for _, name in given] if taken and sorted(word for word, _ in given) == taken else []
