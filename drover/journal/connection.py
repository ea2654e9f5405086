"""How to reach the Kafka that holds the log: shared by everything that opens an aiokafka client."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drover.events.topics import TopicNames


@dataclass(frozen=True, slots=True)
class LogConnection:
    """The log's Kafka and the names on it; `security` holds aiokafka's own keyword arguments, passed through."""

    bootstrap: str
    topics: TopicNames = field(default_factory=TopicNames)
    security: Mapping[str, Any] = field(default_factory=dict)

    @property
    def client_options(self) -> dict[str, Any]:
        """The keyword arguments every aiokafka client of the log is made with."""
        return {"bootstrap_servers": self.bootstrap.split(","), **self.security}

    @property
    def user(self) -> str:
        """Who the log's Kafka takes us for, in words."""
        return str(self.security.get("sasl_plain_username") or "an unnamed user")

    @property
    def is_secured(self) -> bool:
        """Whether the log's Kafka knows who we are, so that it may refuse us something."""
        return bool(self.security.get("security_protocol", "PLAINTEXT") != "PLAINTEXT")
