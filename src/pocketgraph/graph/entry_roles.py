"""What inputs and outputs are for, by their names: the states of a recurrent network, the pictures of a generator."""

import re
from collections.abc import Iterable, Sequence

from pocketgraph.graph.graph import Graph

_STATE = re.compile(r"(?:^|[/_])(state|hidden|memory)(?:$|[/_\d])", re.I)
_GENERATOR = re.compile(r"(g|gen|generator)$", re.I)
_JUDGE = re.compile(r"(d|disc|discriminator|critic)(_\d+)?$", re.I)


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


def generated(graph: Graph) -> list[str]:
    """The nodes of a generator whose results another network judges, which only training has."""
    scopes = {name.partition("/")[0] for name in graph.nodes if "/" in name}
    generators = {scope for scope in scopes if _GENERATOR.match(scope)}
    if not generators or not any(map(_JUDGE.match, scopes)):
        return []
    found = []
    for name in graph.nodes:
        users = graph.consumers.get(name, ())
        if name.partition("/")[0] in generators and any(_JUDGE.match(user.name.partition("/")[0]) for user in users):
            found.append(name)
    return found
