"""What an inventory reads from brokers of other versions."""

import pytest
from kafka.protocol.admin import DescribeClusterResponse, DescribeLogDirsResponse

from drover.cluster.inventory_requests import (
    brokers_request,
    by_partition,
    read_brokers,
    read_directories,
    read_log_directories,
)
from drover.cluster.messages import Metadata
from drover.events.partitions import TopicPartition
from drover.inventory import LogDirectory, RegisteredBroker


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_can_be_asked_for_the_brokers(version: int) -> None:
    assert brokers_request().encode(version=version)


@pytest.mark.parametrize(("version", "total_bytes"), [(1, None), (3, None), (4, 100), (5, 100)])
def test_disks_are_known_from_version_4_on(version: int, total_bytes: int | None) -> None:
    made = DescribeLogDirsResponse(
        version=version,
        throttle_time_ms=0,
        results=[
            DescribeLogDirsResponse.DescribeLogDirsResult(
                version=version, error_code=0, log_dir="/data", topics=[], total_bytes=100, usable_bytes=100
            )
        ],
    )
    response = DescribeLogDirsResponse.decode(made.encode(version=version), version=version)
    assert read_directories(response) == (LogDirectory("/data", total_bytes, total_bytes),)


@pytest.mark.parametrize(("version", "is_cordoned"), [(1, False), (4, False), (5, True)])
def test_version_5_says_which_directories_are_cordoned_and_before_none_is(version: int, is_cordoned: bool) -> None:
    directory = DescribeLogDirsResponse.DescribeLogDirsResult(
        version=5, error_code=0, log_dir="/data", topics=[], total_bytes=1, usable_bytes=1, is_cordoned=True
    )
    made = DescribeLogDirsResponse(version=version, throttle_time_ms=0, results=[directory])
    response = DescribeLogDirsResponse.decode(made.encode(version=version), version=version)
    assert [found.is_cordoned for found in read_directories(response)] == [is_cordoned]


def test_a_fenced_broker_is_dead_and_keeps_its_rack() -> None:
    brokers = [
        DescribeClusterResponse.DescribeClusterBroker(version=2, broker_id=number, host="h", port=1, rack=f"r{number}")
        for number in (2, 1)
    ]
    response = DescribeClusterResponse(version=2, cluster_id="c", brokers=brokers)
    assert read_brokers(response, Metadata("c", {1: "r1"}, {})) == {
        1: RegisteredBroker(1, "r1", is_alive=True),
        2: RegisteredBroker(2, "r2", is_alive=False),
    }


def test_a_broker_that_does_not_answer_or_may_not_tell_has_no_directories() -> None:
    partition = TopicPartition("t", 0)
    result = DescribeLogDirsResponse.DescribeLogDirsResult
    held = DescribeLogDirsResponse.DescribeLogDirsResult.DescribeLogDirsTopic(
        version=5,
        name="t",
        partitions=[
            result.DescribeLogDirsTopic.DescribeLogDirsPartition(
                version=5, partition_index=0, partition_size=7, offset_lag=0, is_future_key=False
            )
        ],
    )
    working = result(version=5, error_code=0, log_dir="/a", topics=[held], total_bytes=9, usable_bytes=2)
    failed = result(version=5, error_code=56, log_dir="/b", topics=[], total_bytes=-1, usable_bytes=-1)
    answers = {
        1: DescribeLogDirsResponse(version=5, throttle_time_ms=0, results=[failed, working]),
        2: DescribeLogDirsResponse(version=5, throttle_time_ms=0, error_code=31, results=[]),
        3: None,
    }
    seen = read_log_directories(answers, [partition, TopicPartition("t", 1)])
    assert seen.sizes == {partition: {1: 7}, TopicPartition("t", 1): {}}
    assert seen.directories == {1: (LogDirectory("/a", 9, 2), LogDirectory("/b", None, None, code=56))}
    assert seen.directories[1][1].failure == "log directory /b has failed (Kafka error 56, KAFKA_STORAGE_ERROR)"


def test_what_each_broker_holds_becomes_who_holds_each_partition() -> None:
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    assert by_partition({2: {second: 3, first: 1}, 1: {first: 2}}) == {first: {1: 2, 2: 1}, second: {2: 3}}
