"""A process that fuzzes one target: python fuzz/worker.py TARGET FOLDER SECONDS, or --measure for the lines reached.

Coverage guides it where atheris is installed; elsewhere inputs are changed blindly.
"""

from __future__ import annotations

import json
import pathlib
import random
import sys
import time
import types
from collections.abc import Iterator
from functools import partial
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)
SOURCES = ROOT / "src" / "pocketgraph"
LONGEST_UNIT = 120  # seconds that an input may take on a busy machine; Execution counts those of computing
MOST_MEGABYTES = 4096  # a bound for the whole process, beyond that on addresses


def load(name: str) -> Any:
    """(atheris or None, the target of this name), its modules instrumented where that is possible."""
    try:
        import atheris
    except ImportError:
        from fuzz.targets import all_targets

        return None, all_targets()[name]
    import numpy  # noqa: F401  instrumented, these only cost time
    import PIL.Image  # noqa: F401

    with atheris.instrument_imports(include=["pocketgraph"], enable_loader_override=False):
        from fuzz.targets import all_targets

        found = all_targets()[name]
        for path in covered(found):
            module = "pocketgraph." + path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
            __import__(module)
    return atheris, found


def covered(target: Any) -> Iterator[str]:
    """The files that a target covers, below ``src/pocketgraph``."""
    for place in target.covers:
        paths = sorted((SOURCES / place).glob("*.py")) if place.endswith("/") else [SOURCES / place]
        for path in paths:
            yield path.relative_to(SOURCES).as_posix()


def main(name: str, work: pathlib.Path, seconds: float) -> None:
    """Fuzzes for that long; inputs of new coverage are kept in ``work``, to go on from."""
    atheris, target = load(name)
    from fuzz.executing import Execution
    from fuzz.mutations import bytes_changed, dictionary

    corpus, seeds, finds = work / "corpus" / name, work / "seeds" / name, work / "finds"
    for place in (corpus, seeds, finds):
        place.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        if len(seed) <= 2 * target.longest:
            (seeds / f"{number}").write_bytes(seed)
    words = work / "seeds" / f"{name}.dict"
    words.write_text(dictionary(target.words))
    execute = Execution(target, finds)
    if atheris is None:
        pool = [path.read_bytes() for path in seeds.iterdir()]
        blindly(target, execute, pool, time.monotonic() + seconds, bytes_changed)
        print(f"#{execute.count}", file=sys.stderr)
        return
    arguments = [
        name, str(corpus), str(seeds), f"-max_len={2 * target.longest}", f"-max_total_time={max(1, round(seconds))}",
        f"-timeout={LONGEST_UNIT}", f"-rss_limit_mb={MOST_MEGABYTES}", f"-artifact_prefix={finds}/{name}-stopped-",
        "-print_final_stats=1", "-detect_leaks=0",
    ]  # fmt: skip
    if target.words:
        arguments.append(f"-dict={words}")
    options: dict[str, Any] = {}
    if target.mutate is not None:
        options["custom_mutator"] = partial(_mutated, target.mutate, lambda data, most: atheris.Mutate(data, most))
    atheris.Setup(arguments, execute, **options)
    atheris.Fuzz()


def _mutated(mutate: Any, plain: Any, data: bytes, most: int, seed: int) -> bytes:
    rng = random.Random(seed)
    return plain(data, most) if rng.random() < 0.3 else mutate(data, most, rng, plain)[:most]


def blindly(target: Any, execute: Any, pool: list[bytes], end: float, bytes_changed: Any) -> None:
    """Executes changed seeds, and changes of these, without knowing what they reach."""
    rng = random.Random(time.time_ns())
    plain = partial(bytes_changed, rng=rng)
    for seed in pool:
        execute(seed)
    first = len(pool)
    while time.monotonic() < end:
        given = rng.choice(pool) if pool else b""
        data = _mutated(
            target.mutate or (lambda d, m, *_: plain(d, m)), plain, given, 2 * target.longest, rng.getrandbits(32)
        )
        execute(data)
        if len(pool) < first + 1000:
            pool.append(data)


def measure(name: str, work: pathlib.Path) -> None:
    """Prints how many lines the kept inputs reach of those that the target's files have."""
    from fuzz.targets import all_targets

    target = all_targets()[name]
    paths = {str(SOURCES / path) for path in covered(target)}
    reached: dict[str, set[int]] = {path: set() for path in paths}

    def trace(frame: types.FrameType, event: str, _: object) -> Any:
        lines = reached.get(frame.f_code.co_filename)
        if lines is None:
            return None
        lines.add(frame.f_lineno)
        return trace

    inputs = [path.read_bytes() for place in ("corpus", "seeds") for path in (work / place / name).glob("*")]
    sys.settrace(trace)
    for data in inputs:
        try:
            target.read(data)
        except Exception:  # counted elsewhere
            continue
    sys.settrace(None)
    lines = {path: set(_lines(compile(pathlib.Path(path).read_text("utf-8"), path, "exec"))) for path in paths}
    hit = sum(len(reached[path] & lines[path]) for path in paths)
    print(json.dumps({"reached": hit, "lines": sum(map(len, lines.values())), "inputs": len(inputs)}))


def _lines(code: types.CodeType) -> Iterator[int]:
    """The lines inside of functions: those outside run when the module is imported."""
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            if not inner.co_flags & 2 and inner.co_name != "<module>":  # a class body
                yield from _lines(inner)
                continue
            yield from (line for _, _, line in inner.co_lines() if line is not None and line != inner.co_firstlineno)
            yield from _lines(inner)


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        measure(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        main(sys.argv[1], pathlib.Path(sys.argv[2]), float(sys.argv[3]))
