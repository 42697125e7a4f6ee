"""What a comparison of two models found: a verdict in words, a line, and a table for pages and notebooks."""

from __future__ import annotations

from dataclasses import dataclass

from pocketgraph.pages.document import fragment
from pocketgraph.pages.page_glossary import GLOSSARY
from pocketgraph.pages.parts import Cell, Column, Row, Verdict, number, table, words
from pocketgraph.pages.quantities import counted
from pocketgraph.runtime.comparison.answer_metrics import ACCEPTABLE
from pocketgraph.runtime.comparison.compare import Difference

IN_NOTEBOOK, IN_A_LINE = 30, 3  # outputs
COLUMNS = (
    Column("output"), Column("shape"), Column("largest difference"), Column("of the peak"), Column("mean difference"),
    Column("top-1", GLOSSARY["top-1"]), Column("KL, nats", GLOSSARY["KL divergence"]),
    Column("signal to noise, dB", GLOSSARY["signal to noise"]), Column("verdict", is_words=True),
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Report:
    """The comparison of two models.

    Attributes:
        outputs: one entry an output, over all runs.
        tolerance: the largest relative difference that passes.
        runs: how many sets of feeds went through.
        is_eight_bit: whether the outputs were judged as those of an eight-bit model: by agreement of the top class, KL
            divergence and signal-to-noise ratio in place of ``tolerance``.
        is_made_up: whether the feeds were made up.
        notes: what the verdict does not cover, a sentence each.
    """

    outputs: tuple[Difference, ...]
    tolerance: float
    runs: int
    is_eight_bit: bool = False
    is_made_up: bool = False
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every output passed."""
        return all(output.passed for output in self.outputs)

    @property
    def unproven(self) -> list[str]:
        """Which outputs that passed say hardly anything of the second model, and why, a sentence each."""
        return [f"whether '{d.name}' is right: it {d.unproven}" for d in self.outputs if d.unproven and not d.problem]

    @property
    def standard(self) -> str:
        """What an output had to be to pass."""
        if self.is_eight_bit:
            return f"eight-bit: top class {ACCEPTABLE.agreement:.0%}, KL {ACCEPTABLE.kl:g}, SNR {ACCEPTABLE.snr:g} dB"
        return f"within {self.tolerance:g} of the largest magnitude"

    def __bool__(self) -> bool:
        return self.passed

    def verdict(self) -> Verdict:
        """Whether the second model may stand for the first, in plain words, and by what standard."""
        failed = [d.name for d in self.outputs if not d.passed]
        feeds = "made-up feeds" if self.is_made_up else "feeds"
        how = f"Asked for: {self.standard}, on {counted(self.runs, 'set')} of {feeds}."
        if not failed:
            return Verdict("good", "The models agree: ship the second one", [how, *self.notes])
        names = ", ".join(failed[:5])
        return Verdict(
            "bad", f"Do not ship the second model: {self._differing(len(failed))}",
            [f"These differ: {names}{', …' if len(failed) > 5 else ''}.", how, *self.notes],
        )  # fmt: skip

    def _differing(self, failed: int) -> str:
        return f"{failed} of {counted(len(self.outputs), 'output')} {'differs' if failed == 1 else 'differ'}"

    def __repr__(self) -> str:
        failed = sum(not d.passed for d in self.outputs)
        is_equal = self._differing(failed) if failed else "equal"
        sets = f"{counted(self.runs, 'set')} of {'made-up ' * self.is_made_up}feeds"
        worst = "".join(
            f"; {d.name}: {d.problem or f'{d.largest:.3g}, {d.largest_relative:.3g} of the peak'}"
            for d in sorted(self.outputs, key=lambda d: d.passed)[:IN_A_LINE]
        )
        return f"<Report: {is_equal}, {self.standard} on {sets}{worst}>"

    def _repr_html_(self) -> str:
        return fragment(self.verdict().html(), table(COLUMNS, [_row(d) for d in self.outputs], IN_NOTEBOOK))


def _row(d: Difference) -> Row:
    unknown = Cell("")
    return Row([
        words(d.name), words(f"[{','.join(map(str, d.shape))}]"), number(d.largest, ".3g"),
        number(d.largest_relative, ".3g"), number(d.mean, ".3g"), unknown if d.top1 is None else number(d.top1, ".2%"),
        unknown if d.kl is None else number(d.kl, ".3g"), unknown if d.snr is None else number(d.snr, ".1f"),
        Cell(d.problem or ("passes" if d.passed else "differs"), kind="" if d.passed else "bad"),
    ])  # fmt: skip
