"""Makes a folder of labelled spoken words with the speech synthesizers at hand: recordings to judge keyword models on.

    python tools/make_spoken_words.py FOLDER [--count 3200] [--seed 0] [--words yes no …]

Needs ``espeak-ng``, ``flite`` or ``text2wave`` (festival with its voices), whichever are installed: those in the path
are used. FOLDER gets a folder a word, each with WAV files of one second, 16 kHz, 16 bits, one channel: the ten words
that the usual models know, and six others. Voice, pitch and speed are chosen by chance; each word is then put somewhere
into its second, made louder or quieter, played in a room, and gets noise from the background. The same seed and
synthesizers give the same files.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import tempfile
import wave
from collections.abc import Callable

import numpy as np

from pocketgraph.graph.tensor import Array

WORDS = (
    "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go",
    "bed", "cat", "happy", "house", "marvin", "one",
)  # fmt: skip
RATE = 16000
ESPEAK_VOICES = ("en-us", "en-gb", "en-gb-x-rp")
ESPEAK_VARIANTS = ("+m1", "+m2", "+m4", "+m5", "+m6", "+m7", "+m8", "+f1", "+f2", "+f3", "+f4", "+f5")
FLITE_VOICES = ("kal16", "awb", "rms", "slt")
FESTIVAL_VOICES = ("kal_diphone", "ked_diphone", "cmu_us_slt_arctic_hts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=3200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--words", nargs="+", default=WORDS)
    arguments = parser.parse_args()
    words = arguments.words
    speakers = [speaker for program, speaker in SPEAKERS.items() if shutil.which(program)]
    if not speakers:
        raise SystemExit(f"none of {', '.join(SPEAKERS)} is in the path")
    for word in words:
        (arguments.folder / word).mkdir(parents=True, exist_ok=True)
    for index in range(arguments.count):
        chance = np.random.default_rng([arguments.seed, index])
        word = words[index % len(words)]
        speak = speakers[index // len(words) % len(speakers)]
        second = placed(spoken(speak, word, chance), chance)
        write(arguments.folder / word / f"{index:05d}.wav", second)
    print(f"{arguments.count} recordings of {len(words)} words in {arguments.folder}")


def espeak(word: str, path: str, chance: np.random.Generator) -> str:
    """A formant synthesizer: many voices, all of them mechanical. Gives the voice's name."""
    voice = str(chance.choice(ESPEAK_VOICES)) + str(chance.choice(ESPEAK_VARIANTS))
    pitch, speed = int(chance.integers(25, 75)), int(chance.integers(110, 170))
    _run("espeak-ng", "-v", voice, "-p", str(pitch), "-s", str(speed), "-w", path, word)
    return voice


def flite(word: str, path: str, chance: np.random.Generator) -> str:
    """Units and statistics of recorded speakers. Gives the voice's name."""
    voice = str(chance.choice(FLITE_VOICES))
    pitch = chance.uniform(85, 140) * (1.6 if voice == "slt" else 1)
    settings = {"duration_stretch": chance.uniform(0.9, 1.4), "int_f0_target_mean": pitch}
    told = [part for name, value in settings.items() for part in ("--setf", f"{name}={value:.3f}")]
    _run("flite", "-voice", voice, *told, "-t", word, "-o", path)
    return voice


def festival(word: str, path: str, chance: np.random.Generator) -> str:
    """Diphones of recorded speakers. Gives the voice's name."""
    voice = str(chance.choice(FESTIVAL_VOICES))
    stretch = chance.uniform(0.9, 1.3)
    how = f"(begin (voice_{voice}) (Parameter.set 'Duration_Stretch {stretch:.3f}))"
    _run("text2wave", "-eval", how, "-o", path, text=word)
    return voice


SPEAKERS: dict[str, Callable[[str, str, np.random.Generator], str]] = {
    "espeak-ng": espeak,
    "flite": flite,
    "text2wave": festival,
}


def spoken(speak: Callable[[str, str, np.random.Generator], str], word: str, chance: np.random.Generator) -> Array:
    """A word without the silence around it: float [samples] at 16 kHz, 1 at most."""
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "word.wav")
        speak(word, path, chance)
        with wave.open(path) as file:
            rate = file.getframerate()
            samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(float) / 32768
    samples = resampled(samples, rate)
    loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max())
    samples = samples[loud[0] : loud[-1] + 1]
    return samples / np.abs(samples).max()


def resampled(samples: Array, rate: int) -> Array:
    """At 16 kHz, without what lies above 8 kHz."""
    if rate == RATE:
        return samples
    spectrum = np.fft.rfft(samples)
    length = round(len(samples) * RATE / rate)
    wanted = np.zeros(length // 2 + 1, complex)
    kept = min(len(wanted), len(spectrum))
    wanted[:kept] = spectrum[:kept]
    return np.fft.irfft(wanted, length) * (length / len(samples))


def placed(word: Array, chance: np.random.Generator) -> Array:
    """A second that has the word somewhere about its middle, in a room, with noise: float [16000]."""
    if chance.random() < 0.5:
        tail = int(RATE * chance.uniform(0.05, 0.2))
        echo = chance.normal(0, 1, tail) * np.exp(-6.9 * np.arange(tail) / tail)
        echo *= chance.uniform(0.1, 0.35) / np.sqrt((echo**2).sum())
        word = np.convolve(word, np.concatenate([[1.0], echo]))
    word = word[:RATE]
    room = RATE - len(word)
    start = int(np.clip(room / 2 + chance.uniform(-1600, 1600), 0, room))
    second = np.zeros(RATE)
    second[start : start + len(word)] = word * chance.uniform(0.25, 0.9) / np.abs(word).max()
    noise = np.fft.rfft(chance.normal(0, 1, RATE))
    noise /= np.maximum(np.arange(len(noise)), 20) ** chance.uniform(0, 0.8)  # from white to nearly pink
    hum = np.fft.irfft(noise, RATE)
    level = 10 ** (-chance.uniform(20, 45) / 20)
    power = np.sqrt((second[start : start + len(word)] ** 2).mean() / (hum**2).mean())
    return second + hum * level * power


def write(path: pathlib.Path, samples: Array) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(np.clip(samples * 32767, -32768, 32767).astype("<i2").tobytes())


def _run(*command: str, text: str = "") -> None:
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")


if __name__ == "__main__":
    main()
