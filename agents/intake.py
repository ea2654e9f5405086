"""The loop that all agents share: decode each consumed record and pass the command to its shard."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from faust.types import StreamT

from drover.agents.ports import CommandHost
from drover.agents.records import Delivered
from drover.shard.messages import arrival_of


@dataclass(frozen=True, slots=True)
class Intake:
    """One command topic on its way to the host; `topic_index` is its place in `TopicNames.commands`."""

    topic_index: int
    host: CommandHost

    async def run(self, stream: StreamT[None]) -> None:
        """Pass on every record of the stream, in order. No exception may escape, or Faust would hang or restart."""
        try:
            async for event in stream.events():
                self.take(cast("Delivered", event.message))
        except Exception as error:  # noqa: BLE001 - whatever it is, a command would be lost: end the process
            self.host.fail(f"the agent of command topic {self.topic_index} failed", error)

    def take(self, delivered: Delivered) -> None:
        """Decode each record of a batch and pass it to the host."""
        index, partition, generation = self.topic_index, delivered.partition, delivered.generation_id or 0
        for record in delivered.records:
            arrival = arrival_of(index, record.offset, record.timestamp, record.value or b"", _readable(record.headers))
            self.host.arrive(partition, arrival, generation)


def _readable(headers: Sequence[tuple[str, bytes | None]]) -> Iterable[tuple[str, bytes]]:
    """Return the headers with a value; Kafka allows headers without one, and repeated names."""
    return [(name, value) for name, value in headers if value is not None]
