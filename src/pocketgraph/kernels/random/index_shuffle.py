"""One place of a shuffled range at a time, without the range: a block cipher whose blocks are places.

Beaulieu and others: The Simon and Speck families of lightweight block ciphers (2013), with few rounds and words of any
size; what falls outside of the range is enciphered again (Black and Rogaway: Ciphers with arbitrary finite domains).
"""

from __future__ import annotations

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.kernels.arrays import Array, reserve
from pocketgraph.kernels.registry import kernel

CONSTANT = 0xFFFFFFFC
SEQUENCE = 0x7369F885192C0EF5
"""Its lowest bits go into the keys, one a round."""
LEAST_BITS = 16  # of a block


@kernel("RandomIndexShuffle")
def random_index_shuffle(index: Array, seed: Array, max_index: Array, *, rounds: int = 4) -> Array:
    """Where each index in 0…max_index is in a permutation of these that the seed (…, 3) chooses.

    Raises:
        RunError: an index is beyond ``max_index``, the number of rounds is odd or below 4, or shapes do not fit.
    """
    if rounds < 4 or rounds % 2:
        raise RunError(f"rounds must be even and at least 4, not {rounds}")
    if seed.shape[-1:] != (3,) or any(value.ndim > 1 for value in (index, max_index)) or seed.ndim > 2:
        raise RunError(f"seed must be [3] or [n, 3] and the others vectors or scalars, not {list(seed.shape)}")
    count = np.broadcast_shapes(index.shape, seed.shape[:-1], max_index.shape)
    reserve(count, index.dtype)
    indices, lasts = (np.broadcast_to(value, count).reshape(-1).tolist() for value in (index, max_index))
    seeds = np.broadcast_to(seed, (*count, 3)).reshape(-1, 3).tolist()
    places = [_place(*each, rounds) for each in zip(indices, seeds, lasts, strict=True)]
    return np.array(places, np.uint64).astype(index.dtype).reshape(count)


def _place(index: int, seed: list[int], last: int, rounds: int) -> int:
    if not 0 <= index <= last:
        raise RunError(f"the index {index} is not within 0…{last}")
    if last == 0:
        return 0
    bits = int(np.ceil(np.log2(float(last))))
    word = min(max(bits + bits % 2, LEAST_BITS), 64) // 2
    keys = _keys(seed, rounds, word)
    place = _enciphered(index, keys, word)
    while place > last:
        place = _enciphered(place, keys, word)
    return place


def _turned(value: int, places: int, word: int) -> int:
    """The bits of a word, moved left in a circle."""
    return (value << places | value >> word - places) & (1 << word) - 1


def _keys(seed: list[int], rounds: int, word: int) -> list[int]:
    mask = (1 << word) - 1
    keys = [part & 0xFFFFFFFF & mask for part in seed]
    sequence = SEQUENCE & mask
    for _ in range(3, rounds):
        turned = _turned(keys[-1], word - 3, word) ^ _turned(keys[-1], word - 4, word)
        keys.append((CONSTANT & mask) ^ (sequence & 1) ^ keys[-3] ^ turned)
        sequence >>= 1
    return keys


def _enciphered(block: int, keys: list[int], word: int) -> int:
    mask = (1 << word) - 1
    left, right = block >> word & mask, block & mask
    for key in keys:
        mixed = _turned(right, 1, word) & _turned(right, 8 % word, word) ^ _turned(right, 2, word)
        left, right = right, left ^ mixed ^ key
    return left << word | right
