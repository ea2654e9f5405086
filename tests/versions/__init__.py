"""Other versions of Kafka: the contract suite's twins, the recorder, the stories, and the table that they fill."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """A version of Kafka in one of its modes."""

    kafka: str
    zookeeper_mode: bool = False

    def __str__(self) -> str:
        return f"Kafka {self.kafka}{' in ZooKeeper mode' if self.zookeeper_mode else ''}"


EVERY = (
    Version("3.7.2"),
    Version("3.8.1"),
    Version("3.9.2"),
    Version("3.9.2", zookeeper_mode=True),
    Version("4.0.2"),
    Version("4.1.2"),
    Version("4.2.2"),
    Version("4.3.0"),
    Version("4.3.1"),
    Version("4.4.0"),
)
"""What Drover is proven on, the oldest first."""
