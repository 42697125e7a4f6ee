"""From a model's times here to its time on another device, by what was published of that device.

A model's time on a device is worked out as

    slowdown(device) * sum over families of weight(family) * time here(family)

The weights say how much more the devices of one class (microcontrollers, or all others, in one precision) slow one
family of operations down than another; they are fitted to all published times of the class. The slowdown is the
geometric mean of a device's published times over what the sum gives for the same models. Models of odd shapes are
further off than models like the published ones.

How far off this is, is found by leaving out: for each published time, everything is fitted anew without its model, and
the time is estimated as if it were that of an unknown model. The error bar is the factor that nine in ten of these
estimates are within.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from pocketgraph.exporting.devices.device_table import Device, devices, published_models
from pocketgraph.exporting.devices.family_times import (
    FAMILIES,
    YARDSTICK,
    Milliseconds,
    yardstick_operations,
    yardstick_times,
)
from pocketgraph.graph.groups import by_key
from pocketgraph.graph.tensor import Array

EQUAL = 0.05  # how much it counts that families are slowed down equally, beside one device's published times
ROUNDS = 20  # at most, of fitting weights and slowdowns in turn
STEPS = 200  # at most, of the fit of weights
STILL = 1e-7  # a change that is none
INSIDE = 0.9  # share of the estimates that are within the error bar
RULE_OF_THUMB = 3.0  # how many times as long it may take where only operations a second are known


class PublishedTime(NamedTuple):
    """A time that somebody published: milliseconds of one run of a model on a device."""

    device: str
    model: str
    milliseconds: float


class LeftOut(NamedTuple):
    """A published time, and what is estimated for it when its model is left out of the fit."""

    published: PublishedTime
    estimate: float

    @property
    def factor(self) -> float:
        """How many times too long, or too short, the estimate is; 1 and more."""
        ratio = self.estimate / self.published.milliseconds
        return max(ratio, 1 / ratio)


class ClassModel(NamedTuple):
    """What is known of a class of devices in one precision.

    Attributes:
        weights: of the families, in their order.
        slowdowns: by device.
        left_out: the estimates that it was validated on.
        error: the factor that nine in ten of them are within.
    """

    weights: Array
    slowdowns: Mapping[str, float]
    left_out: tuple[LeftOut, ...]
    error: float

    @property
    def median_factor(self) -> float:
        """The factor that half of the estimates are within."""
        return float(np.median([one.factor for one in self.left_out]))


class Latency(NamedTuple):
    """An estimate in milliseconds, and what nine in ten measured times are between."""

    milliseconds: float
    low: float
    high: float


def estimate(device: Device, precision: str, times: Milliseconds, operations: Mapping[str, int]) -> Latency | None:
    """How long a model takes on a device; None where nothing is known of the device in this precision, or the model has
    no operations that take time.

    Args:
        precision: ``float`` or ``int8``.
        times: the model's times by family, on the machine of published_models.toml.
        operations: of one run, by op.
    """
    if device.own is not None or device.gflops is not None:
        return _by_speed(device, times, operations) if precision == "float" else None
    if not device.published.get(precision):
        return None
    fitted = class_model(device.kind == "microcontroller", precision)
    slowdown = fitted.slowdowns.get(device.name)
    if slowdown is None:  # a device of one's own, with published times
        slowdown = _slowdown(_times_of(device, precision), fitted.weights)
    found = slowdown * float(fitted.weights @ _vector(times))
    return Latency(found, found / fitted.error, found * fitted.error) if found > 0 else None


def _by_speed(device: Device, times: Milliseconds, operations: Mapping[str, int]) -> Latency | None:
    """The float estimate for a device of which operations a second are known."""
    if device.own is not None and device.own.operations == operations:
        return Latency(device.own.milliseconds, device.own.least, device.own.most)
    if device.speeds:
        yard = published_models()[YARDSTICK]
        ratios = {
            name: (count / yard[name] / 1e6) / device.speeds[name]
            for name, count in yardstick_operations().items()
            if name in device.speeds
        }
        if ratios:
            usual = float(np.mean(list(ratios.values())))
            found = sum(times[name] * ratios.get(name, usual) for name in FAMILIES)
            error = class_model(False, "float").error
            return Latency(found, found / error, found * error) if found > 0 else None
    if device.gflops is None or not sum(operations.values()):
        return None
    found = sum(operations.values()) / device.gflops / 1e6
    return Latency(found, found, found * RULE_OF_THUMB)


@cache
def class_model(is_micro: bool, precision: str) -> ClassModel:
    """What the table knows of microcontrollers, or of all other devices, in one precision, and how far off it is."""
    known = tuple(
        time
        for device in devices()
        if (device.kind == "microcontroller") == is_micro
        for time in _times_of(device, precision)
    )
    left_out = []
    for model in dict.fromkeys(time.model for time in known):
        rest = [time for time in known if time.model != model]
        weights, slowdowns = _fitted(rest)
        left_out += [
            LeftOut(time, slowdowns[time.device] * float(weights @ _vector(published_models()[model])))
            for time in known
            if time.model == model and time.device in slowdowns
        ]
    error = float(np.quantile([one.factor for one in left_out], INSIDE, method="higher"))
    return ClassModel(*_fitted(known), tuple(left_out), error)


def _times_of(device: Device, precision: str) -> list[PublishedTime]:
    return [PublishedTime(device.name, *pair) for pair in device.published.get(precision, {}).items()]


def _fitted(known: Sequence[PublishedTime]) -> tuple[Array, dict[str, float]]:
    """Weights and slowdowns that give the published times best; every device counts as much as any other."""
    by_device = by_key((time.device, time) for time in known)
    weights: Array = np.ones(len(FAMILIES))
    slowdowns: dict[str, float] = {}
    for _ in range(ROUNDS):
        slowdowns = {name: _slowdown(times, weights) for name, times in by_device.items()}
        rows = [
            _vector(published_models()[t.model]) * (slowdowns[t.device] / t.milliseconds / np.sqrt(len(times)))
            for times in by_device.values()
            for t in times
        ]
        wanted = [1 / np.sqrt(len(times)) for times in by_device.values() for _ in times]
        before = weights
        weights = _least_squares(np.array(rows), np.array(wanted), weights)
        weights = weights / weights.max()
        if np.abs(weights - before).max() < STILL:
            break
    return weights, {name: _slowdown(times, weights) for name, times in by_device.items()}


def _least_squares(rows: Array, wanted: Array, start: Array) -> Array:
    """Weights that are not negative, near to each other, and make ``rows @ weights`` near to what is wanted."""
    size = len(start)
    even = np.eye(size) * np.sqrt(EQUAL) / start.mean()
    matrix = np.vstack([rows, even])
    target = np.concatenate([wanted, np.full(size, np.sqrt(EQUAL))])
    square, right = matrix.T @ matrix, matrix.T @ target
    weights: Array = start.copy()
    for _ in range(STEPS):  # coordinate descent
        before = weights.copy()
        for place in range(size):
            rest = right[place] - square[place] @ weights + square[place, place] * weights[place]
            weights[place] = max(0.0, rest / square[place, place])
        if np.abs(weights - before).max() < STILL:
            break
    return weights


def _slowdown(times: Sequence[PublishedTime], weights: Array) -> float:
    """The geometric mean of published times over the weighted times here."""
    ratios = [time.milliseconds / float(weights @ _vector(published_models()[time.model])) for time in times]
    return float(np.exp(np.mean(np.log(ratios))))


def _vector(times: Mapping[str, float]) -> Array:
    return np.array([times[family] for family in FAMILIES])


@cache
def machine_ratios() -> Mapping[str, float]:
    """How many times as long each family takes on the machine of published_models.toml as on this one."""
    here, there = yardstick_times().families, published_models()[YARDSTICK]
    whole = sum(there.values()) / sum(here.values())
    known = ("convolution", "depthwise")  # the others take too little of the yardstick to go by
    return {name: there[name] / here[name] if name in known and here[name] > 0 else whole for name in FAMILIES}
