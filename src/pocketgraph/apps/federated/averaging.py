"""The rounds of federated averaging: Flower's weighted average, of those clients whose results are sound.

McMahan et al., "Communication-efficient learning of deep networks from decentralized data" (2017). This module needs
Flower; flower.py says so where it is missing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.common import Code, FitIns, GetPropertiesIns, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.strategy import FedAvg

from pocketgraph.errors import RunError
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.quantities import counted


@dataclass(frozen=True)
class Round:
    """What came of one round.

    Attributes:
        number: from 1.
        loss: mean of the clients' losses, by their samples; nan where no result was sound.
        clients: whose results were averaged, with their samples.
        left_out: why others were not.
    """

    number: int
    loss: float
    clients: dict[str, int]
    left_out: dict[str, str]


class SoundAverage(FedAvg):  # type: ignore[misc]  # Flower's classes are not known where it is not installed
    """Flower's FedAvg, which leaves out and names clients that are gone, do not fit, or send what is not finite.

    Args:
        first: the first values of the variables.
        clients: how many must be there before the first round.
        share: of the clients that are asked in a round, chosen by ``seed``.
        patience: seconds to wait for clients.
        on_round: told of each round.
    """

    def __init__(
        self, first: Sequence[Array], clients: int, share: float, seed: int, patience: float,
        on_round: Callable[[Round], None] | None,
    ) -> None:  # fmt: skip
        super().__init__(
            fraction_fit=share,
            fraction_evaluate=0.0,
            min_fit_clients=1,
            min_available_clients=clients,
            initial_parameters=ndarrays_to_parameters(list(first)),
            fit_metrics_aggregation_fn=lambda metrics: {},
        )
        self.values = list(first)
        self.rounds: list[Round] = []
        self._clients, self._share, self._seed, self._patience, self._on_round = (
            clients,
            share,
            seed,
            patience,
            on_round,
        )
        self._names: dict[str, str] = {}
        self._asked: dict[str, str] = {}

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> list[tuple[Any, Any]]:
        """Chooses who is asked."""
        needed = self._clients if server_round == 1 else 1
        if not client_manager.wait_for(needed, timeout=int(self._patience)):
            raise RunError(
                f"{client_manager.num_available()} of {needed} clients came within {self._patience:g} seconds"
            )
        named = sorted((self._name(proxy), cid, proxy) for cid, proxy in dict(client_manager.all()).items())
        chooser = random.Random(self._seed * 1_000_003 + server_round)
        chosen = chooser.sample(named, max(1, round(self._share * len(named))))
        self._asked = {cid: name for name, cid, _ in chosen}
        return [(proxy, FitIns(parameters, {"round": server_round})) for _, _, proxy in chosen]

    def aggregate_fit(self, server_round: int, results: list[Any], failures: list[Any]) -> tuple[Any, dict[str, Any]]:
        """Averages what is sound, in the order of the clients' names, so that the same results give the same bytes."""
        left_out = dict.fromkeys(self._asked.values(), "it did not answer")
        sound = []
        for proxy, result in results:
            name = self._asked[proxy.cid]
            why = self._unsound(result)
            if why:
                left_out[name] = why
            else:
                del left_out[name]
                sound.append((name, proxy, result))
        sound.sort(key=lambda one: one[0])
        averaged, _ = super().aggregate_fit(server_round, [(proxy, result) for _, proxy, result in sound], [])
        if averaged is not None:
            self.values = [
                np.asarray(new, old.dtype)
                for new, old in zip(parameters_to_ndarrays(averaged), self.values, strict=True)
            ]
            averaged = ndarrays_to_parameters(self.values)
        samples = {name: int(result.num_examples) for name, _, result in sound}
        total = sum(samples.values())
        loss = sum(float(one.metrics["loss"]) * one.num_examples for _, _, one in sound) / total if total else np.nan
        finished = Round(server_round, float(loss), samples, dict(sorted(left_out.items())))
        self.rounds.append(finished)
        if self._on_round is not None:
            self._on_round(finished)
        return averaged, {}

    def _unsound(self, result: Any) -> str:
        """Why a result is not averaged; "" when it is."""
        if said := result.metrics.get("error"):
            return str(said)[:500]
        try:
            values = parameters_to_ndarrays(result.parameters)
        except Exception as error:  # whatever a client sent that is no array
            return f"it sent no arrays ({type(error).__name__})"
        shapes, wanted = [value.shape for value in values], [value.shape for value in self.values]
        if shapes != wanted or any(value.dtype.kind != "f" for value in values):
            return f"it sent {counted(len(values), 'array')} that are not this graph's variables"
        if not all(np.isfinite(value).all() for value in values):
            return "it sent numbers that are not finite"
        loss = result.metrics.get("loss")
        if result.num_examples < 1 or not isinstance(loss, float) or not np.isfinite(loss):
            return "it sent no samples or no loss"
        return ""

    def _name(self, proxy: Any) -> str:
        """What a client calls itself; a name that is taken gets its address behind it."""
        if proxy.cid not in self._names:
            try:
                reply = proxy.get_properties(GetPropertiesIns({}), self._patience, None)
                name = str(reply.properties.get("name", "")) if reply.status.code == Code.OK else ""
            except Exception:  # it is gone again; asking it to train will say so
                name = ""
            taken = name in self._names.values()
            self._names[proxy.cid] = f"{name} ({proxy.cid})" if taken or not name else name
        return self._names[proxy.cid]
