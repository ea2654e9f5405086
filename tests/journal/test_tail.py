"""The tail of the log says what helps where Kafka does not allow something."""

import asyncio
from typing import NoReturn

import pytest
from aiokafka.errors import TopicAuthorizationFailedError

from drover.errors import LogAccessError
from drover.events.topics import TopicNames
from drover.journal import tail
from drover.journal.connection import LogConnection
from drover.journal.tail import LogTail


async def refused(*_: object) -> NoReturn:
    raise TopicAuthorizationFailedError("drover.events")


async def test_offsets_that_kafka_does_not_tell_name_the_missing_acl(monkeypatch: pytest.MonkeyPatch) -> None:
    made = LogTail(LogConnection("127.0.0.1:1", TopicNames()), shards=1, client_id="tail")
    monkeypatch.setattr(tail, "learn_leaders", lambda *_: asyncio.sleep(0))
    monkeypatch.setattr(made._offsets_consumer, "beginning_offsets", refused)
    monkeypatch.setattr(made._offsets_consumer, "end_offsets", refused)
    try:
        with pytest.raises(LogAccessError, match="drover acls"):
            await made.bounds("drover.events")
    finally:
        await made.close()
