"""The shortest way through a session: the call that was made last, made again.

A small model computes for ten microseconds, and a program calls it with the same names, types and shapes each time. So
what must be alike is compared directly, without a key for a table; anything else takes the longer way (call_key.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from pocketgraph.runtime.planning.call_key import may_switch, switch_of
from pocketgraph.runtime.planning.execution_plan import Execution

Array = np.ndarray[Any, Any]
RepeatedCall: TypeAlias = "Callable[[Any, Any, Any], list[Array] | None]"
"""Takes fetches, feeds and targets as Session.run gets them; None for a call that is unlike the one it was made of."""


def repeated_call(fetches: Any, feeds: Mapping[Any, Any], targets: Any, execution: Execution) -> RepeatedCall | None:
    """What runs ``execution`` on calls like this one.

    Args:
        fetches, feeds, targets: a call that ``execution`` is the way to run, as Session.run got it.
        execution: computes from the fed values in the order of ``feeds``.

    Returns:
        None where such calls take the longer way: there are targets, names that are no text, values that are no arrays.
    """
    names, values = list(feeds), list(feeds.values())
    if targets != () or type(fetches) not in (list, str) or not all(type(name) is str for name in [*fetches, *names]):
        return None
    if not names or not all(type(value) is np.ndarray for value in values):
        return None
    switches = [(name, switch_of(value)) for name, value in feeds.items() if may_switch(value)]
    kind, wanted = type(fetches), fetches[:] if type(fetches) is list else fetches
    array, nothing = np.ndarray, ()  # which CPython has one of
    if len(names) == 1 and not switches:
        name, dtype, shape = names[0], values[0].dtype, values[0].shape

        def with_one(fetches: Any, feeds: Any, targets: Any) -> list[Array] | None:
            if (
                type(fetches) is kind
                and fetches == wanted
                and type(feeds) is dict
                and len(feeds) == 1
                and targets is nothing
            ):
                value = feeds.get(name)
                if type(value) is array and value.dtype is dtype and value.shape == shape:
                    return execution([value])
            return None

        return with_one
    count, specs = len(names), [(name, value.dtype, value.shape) for name, value in feeds.items()]

    def with_several(fetches: Any, feeds: Any, targets: Any) -> list[Array] | None:
        if (
            type(fetches) is not kind
            or fetches != wanted
            or type(feeds) is not dict
            or len(feeds) != count
            or targets is not nothing
        ):
            return None
        values = []
        for name, dtype, shape in specs:
            value = feeds.get(name)
            if type(value) is not array or value.dtype is not dtype or value.shape != shape:
                return None
            values.append(value)
        for name, switch in switches:
            if switch_of(feeds[name]) is not switch:
                return None
        return execution(values)

    return with_several
