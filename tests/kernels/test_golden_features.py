"""The goldens show every type, attribute, empty and scalar input, NaN and infinity that TensorFlow's kernels take.

``fixtures/mobile_kernels.json.gz`` has the registered types of TensorFlow Mobile's default ops,
``fixtures/golden_gaps.txt`` what no golden of them can show: TensorFlow refuses it itself, leaves the result open (a
distribution), or it takes more than one node (TensorArrays, saving). ``make random_graphs FLAGS='--gaps'`` finds what
is missing, with ``--fill FILE`` it makes goldens that show it.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
REGISTERED = json.loads(gzip.decompress((FIXTURES / "mobile_kernels.json.gz").read_bytes()))
ROWS = [line.split() for line in (FIXTURES / "golden_gaps.txt").read_text().splitlines()]
CANNOT = {row[0]: set(row[1:]) for row in ROWS}


@pytest.fixture(scope="module")
def missing() -> dict[str, set[str]]:
    sys.path.insert(0, str(ROOT / "tools"))
    from random_graphs.features import gaps

    return gaps(set(REGISTERED), REGISTERED)


def test_nothing_is_missing_that_could_be_shown(missing: dict[str, set[str]]) -> None:
    more = {op: sorted(features - CANNOT.get(op, set())) for op, features in missing.items()}
    assert not {op: features for op, features in more.items() if features}


def test_the_list_of_what_cannot_be_shown_is_no_longer_than_it_must_be(missing: dict[str, set[str]]) -> None:
    known = {op: sorted(features - missing.get(op, set())) for op, features in CANNOT.items()}
    assert not {op: features for op, features in known.items() if features}
    assert len(REGISTERED) > 450
    assert sum(map(len, CANNOT.values())) < 500
