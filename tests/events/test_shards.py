"""Which shard a cluster lives in: what every Java producer, and every client that hashes as it does, picks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python

from drover.events.topics import COMMAND_KINDS, TopicNames, murmur2, shard_of


@pytest.mark.parametrize(
    ("text", "signed"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_murmur2_gives_the_values_of_the_java_client(text: str, signed: int) -> None:
    assert murmur2(text.encode()) == signed % 2**32


@given(st.binary(max_size=80))
def test_murmur2_agrees_with_kafka_python(data: bytes) -> None:
    assert murmur2(data) == murmur2_of_kafka_python(data) % 2**32


@given(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,63}", fullmatch=True), st.integers(1, 64))
def test_a_cluster_lives_in_the_partition_that_its_name_as_key_picks(cluster: str, shards: int) -> None:
    java = (murmur2_of_kafka_python(cluster.encode()) & 0x7FFFFFFF) % shards
    assert shard_of(cluster, shards) == java


def test_the_topics_have_the_names_of_the_contract() -> None:
    names = TopicNames()
    assert names.commands == ("drover.alter", "drover.cancel", "drover.blacklist", "drover.broker-failed")
    assert (names.events, names.progress, names.dead_letters) == (
        "drover.events",
        "drover.progress",
        "drover.dead-letters",
    )
    assert TopicNames("east").commands == tuple(f"east.{kind}" for kind in COMMAND_KINDS)
