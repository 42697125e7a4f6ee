"""Words out of scores, held to what recognize_commands.cc and test_streaming_accuracy.cc do."""

import numpy as np
import pytest

from pocketgraph.apps.live.word_recognition import Heard, WordRecognizer, judged, may_repeat
from pocketgraph.errors import RunError

LABELS = ("_silence_", "yes", "no")


def scores(word: int, value: float = 1.0) -> np.ndarray:
    found = np.zeros(3, np.float32)
    found[word] = value
    return found


def test_a_word_is_told_once_and_after_enough_results() -> None:
    recognizer = WordRecognizer(LABELS, window_ms=1000, threshold=0.5, suppression_ms=500, minimum_count=3)
    assert recognizer(scores(1), 0) == Heard("_silence_", 0.0, False)
    assert recognizer(scores(1), 100) == Heard("_silence_", 0.0, False)
    assert recognizer(scores(1), 200) == Heard("_silence_", 0.0, False)  # 200 ms are under a quarter of the window
    assert recognizer(scores(1), 300) == Heard("yes", 1.0, True)
    assert recognizer(scores(1), 400) == Heard("yes", 1.0, False)


def test_a_word_begins_again_after_the_suppression_time_where_it_repeats() -> None:
    """As RecognizeCommands.java of the Android demo, whose words need no silence between them."""
    recognizer = WordRecognizer(LABELS[1:], 200, threshold=0.5, suppression_ms=500, minimum_count=1, repeats=True)
    heard = [recognizer(np.float32([1, 0]), time).is_new for time in range(0, 1400, 100)]
    assert [100 * place for place, is_new in enumerate(heard) if is_new] == [100, 700, 1300]


@pytest.mark.parametrize(
    ("labels", "repeats"),
    [(["up", "down"], True), (["_silence_", "up"], False), (["Background Noise", "Clap"], False), (["silence"], False),
     ([], False)],
)  # fmt: skip
def test_no_word_repeats_beside_a_class_of_silence(labels: list[str], repeats: bool) -> None:
    """It would be told again and again itself, and come between words that are the same."""
    assert may_repeat(labels) is repeats


def test_the_next_word_waits_for_the_suppression_time() -> None:
    recognizer = WordRecognizer(LABELS, window_ms=200, threshold=0.5, suppression_ms=500, minimum_count=1)
    assert recognizer(scores(1), 0).is_new is False
    assert recognizer(scores(1), 100).is_new
    heard = [recognizer(scores(2), time) for time in range(200, 900, 100)]
    assert [entry.is_new for entry in heard].index(True) == 5  # 700 ms, over 500 after the first
    assert heard[5].label == "no"


def test_an_average_has_to_be_over_the_threshold() -> None:
    recognizer = WordRecognizer(LABELS, window_ms=400, threshold=0.6, minimum_count=2)
    recognizer(scores(1), 0)
    heard = recognizer(scores(2), 200)
    assert heard.score == pytest.approx(0.5)
    assert not heard.is_new


def test_wrong_results_are_errors() -> None:
    recognizer = WordRecognizer(LABELS)
    with pytest.raises(RunError, match="should contain 3 elements, but there are 2"):
        recognizer(np.zeros(2), 0)
    recognizer(scores(0), 100)
    with pytest.raises(RunError, match="timestamp of 50 that was earlier than the previous one of 100"):
        recognizer(scores(0), 50)


def test_found_words_are_judged_by_those_that_were_said() -> None:
    said = [("yes", 1000), ("no", 3000), ("yes", 5000), ("no", 9000)]
    found = [("yes", 1300), ("yes", 3100), ("no", 7000), ("yes", 5100), ("yes", 5200)]
    accuracy, verdicts = judged(said, found, tolerance_ms=750)
    assert verdicts == ["Correct", "Wrong", "False Positive", "Correct", "Wrong"]
    assert (accuracy.matched, accuracy.correct, accuracy.wrong, accuracy.false_positives, accuracy.missed) == (
        3, 2, 2, 1, 1,
    )  # fmt: skip
    assert str(accuracy) == "75.0% matched, 50.0% correctly, 50.0% wrongly, 25.0% false positives "
    assert str(judged([], found)[0]) == "No ground truth yet, 5 false positives"
    assert judged(said, found[:1], 750, until_ms=500)[0].truths == 1
