"""Agents decode records and hand them over; whatever goes wrong ends the process instead of escaping into Faust."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from drover.agents import alter, blacklist, broker_failed, cancel
from drover.events.codec import CONTENT_TYPE_HEADER, JSON_CONTENT_TYPE, Malformed, encode_command
from drover.events.commands import TYPES_BY_TOPIC, Freeze
from drover.events.topics import COMMAND_KINDS
from drover.shard.messages import FORWARDED_HEADER, MAX_HEADER_BYTES, Arrival

FREEZE = Freeze(id="f1", cluster="c", by="me", reason="test")


class EndedError(Exception):
    """Stands for the end of the process."""


@dataclass
class RecordingHost:
    """A host that keeps what it is handed."""

    arrived: list[tuple[int, Arrival, int]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    broken: bool = False

    def partitions_revoked(self) -> None: ...

    async def partitions_assigned(self, partitions: Mapping[str, Sequence[int]], generation: int) -> None: ...

    def positions(self) -> Mapping[int, tuple[int, ...]]:
        return {}

    def positions_set(self, positions: Mapping[int, tuple[int, ...]]) -> None: ...

    def arrive(self, partition: int, arrival: Arrival, generation: int) -> None:
        if self.broken:
            raise RuntimeError("the host is broken")
        self.arrived.append((partition, arrival, generation))

    def fail(self, reason: str, error: BaseException | None) -> NoReturn:
        self.reasons.append(reason)
        raise EndedError from error


def record(payload: bytes | None, headers: Sequence[tuple[str, bytes | None]] = (), offset: int = 7) -> Any:
    """Make a record as aiokafka would, whose types forbid the header without a value that Kafka allows."""
    return SimpleNamespace(offset=offset, timestamp=12345, value=payload, headers=headers)


@dataclass
class FakeMessage:
    records: tuple[Any, ...]
    partition: int = 3
    generation_id: int = 4


@dataclass
class FakeEvent:
    message: FakeMessage


class FakeStream:
    """As much of a Faust stream as an agent uses."""

    def __init__(self, *messages: FakeMessage) -> None:
        self._messages = messages

    async def events(self) -> AsyncIterator[FakeEvent]:
        for message in self._messages:
            yield FakeEvent(message)


async def _hand_over(*records: Any, host: RecordingHost | None = None) -> RecordingHost:
    host = host or RecordingHost()
    stream: Any = FakeStream(FakeMessage(records[:1]), FakeMessage(records[1:]))
    await cancel.Agent(host)(stream)
    return host


async def test_a_record_is_decoded_and_handed_over_with_its_place() -> None:
    payload = encode_command(FREEZE)
    host = await _hand_over(record(payload))
    assert host.arrived == [
        (3, Arrival(topic_index=1, offset=7, timestamp_ms=12345, payload=payload, command=FREEZE), 4)
    ]


async def test_json_is_read_by_header_and_by_its_first_character() -> None:
    payload = b" " + encode_command(FREEZE, as_json=True)
    header = ((CONTENT_TYPE_HEADER, JSON_CONTENT_TYPE.encode()),)
    host = await _hand_over(record(payload, header), record(payload))
    assert [arrival.command for _, arrival, _ in host.arrived] == [FREEZE, FREEZE]


async def test_poison_is_handed_over_as_malformed_and_the_next_record_is_handled() -> None:
    poison = (b"\xc1", b"", None, b'{"type": "freeze", "id": "x"}')
    host = await _hand_over(*(record(value) for value in poison), record(encode_command(FREEZE)))
    commands = [arrival.command for _, arrival, _ in host.arrived]
    assert [isinstance(command, Malformed) for command in commands] == [True] * 4 + [False]
    assert [arrival.payload for _, arrival, _ in host.arrived][:3] == [b"\xc1", b"", b""]


async def test_the_forwarded_header_is_seen_and_headers_without_value_are_no_harm() -> None:
    headers = [("other", None), (FORWARDED_HEADER, b"2:5"), (CONTENT_TYPE_HEADER, None)]
    host = await _hand_over(record(encode_command(FREEZE), headers))
    assert host.arrived[0][1].forwarded
    assert host.arrived[0][1].headers == ((FORWARDED_HEADER, b"2:5"),)


async def test_headers_are_kept_unless_they_are_larger_than_any_that_mean_something() -> None:
    for size, kept in ((100, 1), (MAX_HEADER_BYTES, 0)):
        host = await _hand_over(record(encode_command(FREEZE), [("trace", b"x" * size)]))
        assert len(host.arrived[0][1].headers) == kept


async def test_all_records_of_a_message_are_handed_over_in_their_order() -> None:
    host = await _hand_over(*(record(encode_command(FREEZE), offset=offset) for offset in (7, 8, 10, 11)))
    assert [arrival.offset for _, arrival, _ in host.arrived] == [7, 8, 10, 11]


async def test_a_fault_in_the_host_ends_the_process_and_does_not_escape_into_faust() -> None:
    host = RecordingHost(broken=True)
    with pytest.raises(EndedError):
        await _hand_over(record(b"\xc1"), host=host)
    assert host.reasons == ["the agent of command topic 1 failed"]


def test_each_agent_serves_its_own_topic() -> None:
    modules = (alter, cancel, blacklist, broker_failed)
    assert [module.TOPIC_INDEX for module in modules] == [0, 1, 2, 3]
    names = [module.__name__.removeprefix("drover.agents.").replace("_", "-") for module in modules]
    assert tuple(names) == COMMAND_KINDS
    assert len(TYPES_BY_TOPIC) == len(modules)
