"""A log that somebody wrote nonsense to, on a real Kafka: it is passed, or stops where an administrator resumes it."""

import logging
import time

import pytest

from drover.client.history import fold_shards
from drover.client.time_travel import Point, travel
from drover.errors import ConfigurationError
from drover.events.codec import encode_record, record_headers
from drover.events.records import SCHEMA_VERSION, Acquire
from drover.events.topics import TopicNames
from drover.journal import topics
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.recovery import folded_to_end, resume_shard
from drover.local import LocalCluster

pytestmark = pytest.mark.cluster

TOKEN = b"sixteen random b"


async def test_nonsense_is_passed_and_damage_is_shown_and_resumed(
    local_cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    connection = LogConnection(local_cluster.bootstrap, TopicNames("recovery"))
    await topics.init(connection, shards=2)
    journal = KafkaJournal(connection, 2, "test")
    await journal.start()
    try:
        await journal.append(0, b"\x00\x01random", ())
        acquire = Acquire(schema=SCHEMA_VERSION, epoch=1, token=TOKEN, owner="w", group="g", generation=1)
        await journal.append(0, encode_record(acquire), record_headers(acquire))
        broker_ms = journal.broker_time_ms()
        assert broker_ms is not None
        assert abs(broker_ms - time.time() * 1000) < 60_000
        assert (await folded_to_end(connection, 0)).damage is None
        with pytest.raises(ConfigurationError, match="not damaged"):
            await resume_shard(connection, await folded_to_end(connection, 0), 3, "admin")
        await journal.append(0, b"\xc1" + TOKEN, ())
    finally:
        await journal.close()
    with caplog.at_level(logging.WARNING):
        log = await fold_shards(connection)
    assert list(log.damaged) == [0]
    assert "docs/recovery.md" in caplog.text
    point = Point(offset=2)
    assert (await travel(connection, 0, (point,))).reached[point].owner == "w"
    fold = await folded_to_end(connection, 0)
    assert fold.damage is not None
    await resume_shard(connection, fold, fold.damage.offset, "admin")
    log = await fold_shards(connection)
    assert (log.damaged, log.folds[0].owner, log.folds[0].epoch, log.folds[0].void_records) == ({}, "admin", 2, 1)
