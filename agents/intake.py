"""What every agent does: decode one record and hand it over."""

from collections.abc import Iterable
from dataclasses import dataclass

from faust.types import EventT, StreamT

from agents.ports import CommandHost
from drover.shard.messages import Arrival
from events.codec import CONTENT_TYPE_HEADER, decode_command

FORWARDED_HEADER = "drover-forwarded"
MAX_HEADER_BYTES = 4096


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
        """Decode one record and hand it over; what is no command travels on as a value that says why."""
        message = event.message
        pairs = tuple(_readable(message.headers))
        headers = dict(pairs)
        content_type = headers.get(CONTENT_TYPE_HEADER)
        payload = message.value or b""
        arrival = Arrival(
            topic_index=self.topic_index,
            offset=message.offset,
            timestamp_ms=round(message.timestamp * 1000),
            payload=payload,
            command=decode_command(payload, content_type.decode("latin-1") if content_type else None),
            forwarded=FORWARDED_HEADER in headers,
            headers=_kept(pairs),
        )
        self.host.arrive(message.partition, arrival, message.generation_id or 0)


def _kept(pairs: tuple[tuple[str, bytes], ...]) -> tuple[tuple[str, bytes], ...]:
    """Return the headers to send on; none of them where they are larger than any that mean something."""
    size = sum(len(name) + len(value) for name, value in pairs)
    return pairs if size <= MAX_HEADER_BYTES else ()


def _readable(headers: object) -> Iterable[tuple[str, bytes]]:
    """Kafka allows a header without a value and the same name twice; the last one that has a value counts."""
    pairs = headers.items() if isinstance(headers, dict) else headers if isinstance(headers, (tuple, list)) else ()
    for name, value in pairs:
        if value is not None:
            yield name, value
