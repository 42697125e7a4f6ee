"""Makes ``import support`` work from every test folder, and keeps each test run's cache to itself."""

import gc
import os
import pathlib
import shutil
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

sys.path.insert(0, str(pathlib.Path(__file__).parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the test processes fill the processors already

settings.register_profile("same", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))  # "default" draws other examples in each run


gc.disable()


def pytest_collection_finish() -> None:
    """Tests that were collected stay: a search for garbage that looks at all of them takes seconds."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["POCKETGRAPH_CACHE"] = str(tmp_path_factory.mktemp("cache"))


COMPILER = shutil.which("cc")
QUICK = """#!/bin/sh
for word do
    shift
    [ "$word" = -O3 ] && word=-O0
    set -- "$@" "$word"
done
exec {compiler} "$@"
"""


@pytest.fixture(autouse=True, scope="session")
def _quick_compiler(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Exported C is compiled without optimizing, which takes a fourth of the time, where a test does not ask for it."""
    if COMPILER is not None and os.name == "posix" and "CC" not in os.environ:
        quick = tmp_path_factory.mktemp("compiler") / "cc"
        quick.write_text(QUICK.format(compiler=COMPILER))
        quick.chmod(0o755)
        os.environ["CC"] = str(quick)


@pytest.fixture
def optimizing_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exported C is compiled as its users do it."""
    monkeypatch.setenv("CC", COMPILER or "cc")


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_left_to_idle_time() -> Iterator[None]:
    """What a module's sessions left to be compared later would take time and memory of others' tests."""
    yield
    schedule = sys.modules.get("pocketgraph.runtime.certificates.check_schedule")
    if schedule is not None:
        schedule._waiting.clear()
        with schedule._comparing:
            pass


@pytest.fixture
def eight_bits_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `ship` measures of small models, of whose runs a busy machine makes noise."""
    monkeypatch.setattr("pocketgraph.apps.shipping.form_gain._times", lambda *_: (0.007, 0.01))  # milliseconds


@pytest.fixture
def wide_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor with AVX-512, wherever the tests run."""
    monkeypatch.setattr("pocketgraph.litert.rewriting.winograd.has_wide_kernels", lambda: True)


@pytest.fixture(autouse=True, scope="module")
def _browsers_are_closed() -> Iterator[None]:
    yield
    if "browsers" in sys.modules:
        sys.modules["browsers"].close_browsers()
