"""The checked-in lock is complete and sane."""

import importlib.metadata
import re

import pytest

from drover.errors import ConfigurationError
from drover.jars.lock import jar_set, read_lock


def test_the_lock_has_the_broker_the_tools_and_the_zookeeper() -> None:
    kafka = {(jar.name, jar.version) for jar in jar_set("kafka")}
    assert {("kafka_2.13", "4.3.1"), ("kafka-tools", "4.3.1"), ("log4j-slf4j-impl", "2.25.4")} <= kafka
    zookeeper = {(jar.name, jar.version) for jar in jar_set("zookeeper")}
    assert {("zookeeper", "3.9.5"), ("log4j-slf4j2-impl", "2.25.4")} <= zookeeper


def test_the_lock_has_spark_s_connector_of_pyspark_s_version_and_what_it_needs() -> None:
    spark = {(jar.name, jar.version) for jar in jar_set("spark")}
    assert spark == {
        ("spark-sql-kafka-0-10_2.13", importlib.metadata.version("pyspark")),
        ("spark-token-provider-kafka-0-10_2.13", "4.0.0"),
        ("kafka-clients", "3.9.2"),
        ("commons-pool2", "2.13.1"),
    }


@pytest.mark.parametrize("set_name", sorted(read_lock()))
def test_every_entry_is_whole_and_no_artifact_is_there_twice(set_name: str) -> None:
    jars = jar_set(set_name)
    assert len({(jar.group, jar.name) for jar in jars}) == len(jars)
    for jar in jars:
        assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256)
        assert jar.size_bytes > 0
        assert re.fullmatch(r"[A-Za-z0-9._/-]+\.jar", jar.path)
        assert ".." not in jar.path


def test_the_same_path_has_the_same_hash_in_every_set() -> None:
    hashes: dict[str, set[str]] = {}
    for jars in read_lock().values():
        for jar in jars:
            hashes.setdefault(jar.path, set()).add(jar.sha256)
    assert all(len(found) == 1 for found in hashes.values())


def test_an_unknown_set_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError, match="kafka, spark, zookeeper"):
        jar_set("nonsense")
