"""Loops of TensorFlow 1 in the text form, for tests that look at what is inside of them."""

from __future__ import annotations

from collections.abc import Mapping


def counted_loop(rounds: str, body: str, *, start: str = "x", given: Mapping[str, str] | None = None) -> str:
    """The lines of a while loop with one value of type float; ``y`` is what it is at last.

    Args:
        rounds: how many there are, the name of an int32 scalar outside of the loop.
        body: the lines of a round: they make ``next`` of ``v``, the value, and ``i``, the number of the round.
        start: the value at first, a tensor outside.
        given: what else the body takes from outside: the type of each tensor by its name; it is called NAME_in there.
    """
    frame = 'frame_name="loop", parallel_iterations=10'
    constants = "".join(
        f"{name}_in = Enter({name}, T={dtype}, is_constant=true, {frame})\n" for name, dtype in (given or {}).items()
    )
    return f"""
    loop/zero = Const(int32 0)
    loop/i = Enter(loop/zero, T=int32, is_constant=false, {frame})
    loop/v = Enter({start}, T=float, is_constant=false, {frame})
    loop/rounds = Enter({rounds}, T=int32, is_constant=true, {frame})
    {constants}
    loop/i_now = Merge(loop/i, loop/i_next, T=int32, N=2)
    loop/v_now = Merge(loop/v, loop/v_next, T=float, N=2)
    loop/less = Less(loop/i_now, loop/rounds, T=int32)
    loop/go = LoopCond(loop/less)
    loop/i_switch = Switch(loop/i_now, loop/go, T=int32)
    loop/v_switch = Switch(loop/v_now, loop/go, T=float)
    i = Identity(loop/i_switch:1, T=int32)
    v = Identity(loop/v_switch:1, T=float)
    loop/one = Const(int32 1, ^i)
    loop/more = AddV2(i, loop/one, T=int32)
    {body}
    loop/i_next = NextIteration(loop/more, T=int32)
    loop/v_next = NextIteration(next, T=float)
    y = Exit(loop/v_switch, T=float)
    """
