"""A participant as Flower's client, and such clients in the server's own process. This module needs Flower."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flwr.client import NumPyClient
from flwr.common import Code, FitRes, GetPropertiesRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.client_proxy import ClientProxy

from pocketgraph.apps.federated.participant import Participant
from pocketgraph.errors import PocketgraphError
from pocketgraph.graph.tensor import Array


class FlowerClient(NumPyClient):  # type: ignore[misc]  # Flower's classes are not known where it is not installed
    """Answers Flower's messages with what a participant does.

    Attributes:
        rounds: in how many it took part.
    """

    def __init__(self, name: str, participant: Participant) -> None:
        self.name, self.participant, self.rounds = name, participant, 0

    def get_properties(self, config: dict[str, Any]) -> dict[str, Any]:
        """What it calls itself."""
        return {"name": self.name}

    def get_parameters(self, config: dict[str, Any]) -> list[Array]:
        """The variables."""
        return self.participant.values()

    def fit(self, parameters: list[Array], config: dict[str, Any]) -> tuple[list[Array], int, dict[str, Any]]:
        """A round; one that fails is told in words, and counts no samples."""
        self.rounds += 1
        try:
            values, loss = self.participant.round(int(config["round"]), parameters)
        except PocketgraphError as error:
            return [], 0, {"error": str(error)}
        return values, self.participant.samples, {"loss": loss}


class _InProcess(ClientProxy):  # type: ignore[misc]
    """A client that the server calls instead of sending it messages; variables go through Flower's bytes there too."""

    def __init__(self, client: FlowerClient) -> None:
        super().__init__(client.name)
        self._client = client

    def get_properties(self, ins: Any, timeout: float | None, group_id: int | None) -> Any:
        """As Flower asks for it."""
        return GetPropertiesRes(Status(Code.OK, ""), self._client.get_properties(ins.config))

    def fit(self, ins: Any, timeout: float | None, group_id: int | None) -> Any:
        """As Flower asks for it."""
        values, samples, metrics = self._client.fit(parameters_to_ndarrays(ins.parameters), ins.config)
        return FitRes(Status(Code.OK, ""), ndarrays_to_parameters(values), samples, metrics)

    def get_parameters(self, ins: Any, timeout: float | None, group_id: int | None) -> Any:
        """Nobody asks: the server has the first values."""
        raise NotImplementedError

    def evaluate(self, ins: Any, timeout: float | None, group_id: int | None) -> Any:
        """Nobody asks: what is learned is judged by `pocketgraph evaluate`."""
        raise NotImplementedError

    def reconnect(self, ins: Any, timeout: float | None, group_id: int | None) -> Any:
        """Nobody asks: there is no connection."""
        raise NotImplementedError


def register(manager: Any, participants: Mapping[str, Participant]) -> None:
    """Makes clients of participants known to a server."""
    for name, one in participants.items():
        manager.register(_InProcess(FlowerClient(name, one)))
