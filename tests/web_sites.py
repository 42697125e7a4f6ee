"""Pages of ``app web``, built by npm and served by Node.js for a test."""

import pathlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

NPM = shutil.which("npm")
_fetched: dict[str, pathlib.Path] = {}


def built(site: pathlib.Path) -> None:
    """npm ci && npm run build, what npm fetches being fetched once; skips where npm or its registry is not there."""
    if NPM is None:
        pytest.skip("npm is not installed (apt-get install npm)")
    lock = (site / "package-lock.json").read_text("utf-8").partition('"node_modules/')[2]  # without the site's name
    if lock in _fetched:
        (site / "node_modules").symlink_to(_fetched[lock], target_is_directory=True)
    else:
        _fetch(site)
        _fetched[lock] = site / "node_modules"
    done = subprocess.run([NPM, "run", "build"], cwd=site, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def _fetch(site: pathlib.Path) -> None:
    assert NPM is not None
    fetched = subprocess.run([NPM, "ci"], cwd=site, capture_output=True, text=True, timeout=300)
    if fetched.returncode != 0 and any(
        word in fetched.stderr for word in ("ENOTFOUND", "ECONNREFUSED", "EAI_AGAIN", "E404")
    ):
        pytest.skip(f"npm's registry is not there: {fetched.stderr.strip().splitlines()[-1]}")
    assert fetched.returncode == 0, fetched.stderr


@contextmanager
def served(site: pathlib.Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    node = shutil.which("node")
    assert node is not None
    server = subprocess.Popen([node, "serve.mjs", "0"], cwd=site, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip(), server
    finally:
        server.kill()
