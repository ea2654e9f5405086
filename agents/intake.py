"""What every agent does: decode one record and hand it over."""

from collections.abc import Iterable
from dataclasses import dataclass

from faust.types import EventT, StreamT

from agents.ports import CommandHost
from drover.shard.arriving import arrival_of


@dataclass(frozen=True, slots=True)
class Intake:
    """One command topic on its way to the host; `topic_index` is its place in `TopicNames.commands`."""

    topic_index: int
    host: CommandHost

    async def run(self, stream: StreamT[bytes]) -> None:
        """Hand every record of the stream over, in its order. Nothing may escape: Faust would hang or restart."""
        try:
            async for event in stream.events():
                self.take(event)
        except Exception as error:  # noqa: BLE001 - whatever it is, a command would be lost: end the process
            self.host.fail(f"the agent of command topic {self.topic_index} failed", error)

    def take(self, event: EventT[bytes]) -> None:
        """Decode one record and hand it over."""
        message = event.message
        arrival = arrival_of(
            topic_index=self.topic_index,
            offset=message.offset,
            timestamp_ms=round(message.timestamp * 1000),
            payload=message.value or b"",
            headers=_readable(message.headers),
        )
        self.host.arrive(message.partition, arrival, message.generation_id or 0)


def _readable(headers: object) -> Iterable[tuple[str, bytes]]:
    """Kafka allows a header without a value and the same name twice."""
    pairs = headers.items() if isinstance(headers, dict) else headers if isinstance(headers, (tuple, list)) else ()
    for name, value in pairs:
        if value is not None:
            yield name, value
