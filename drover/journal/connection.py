"""The connection settings of the log's Kafka, shared by all aiokafka clients."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drover.events.topics import TopicNames


@dataclass(frozen=True, slots=True)
class LogConnection:
    """The log's Kafka and the names on it; `security` holds the options of `Security.client_options`."""

    bootstrap: str
    topics: TopicNames = field(default_factory=TopicNames)
    security: Mapping[str, Any] = field(default_factory=dict)

    @property
    def client_options(self) -> dict[str, Any]:
        """The keyword arguments of every aiokafka client of the log."""
        from drover.journal.login import aiokafka_options  # noqa: PLC0415 - aiokafka costs start-up time

        return {"bootstrap_servers": self.bootstrap.split(","), **aiokafka_options(self.security)}

    @property
    def user(self) -> str:
        """The name of our user at the log's Kafka, for messages."""
        return str(self.security.get("sasl_plain_username") or "an unnamed user")

    @property
    def is_secured(self) -> bool:
        """Whether we authenticate at the log's Kafka, so that ACLs may apply to us."""
        return bool(self.security.get("security_protocol", "PLAINTEXT") != "PLAINTEXT")
