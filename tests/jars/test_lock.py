"""The checked-in lock is complete and sane."""

import importlib.metadata
import re

import pytest

from drover.errors import ConfigurationError
from drover.jars.lock import KAFKA_VERSION, jar_set, kafka_set, kafka_versions, read_lock


def test_the_lock_has_the_broker_the_tools_and_the_zookeeper() -> None:
    kafka = {(jar.name, jar.version) for jar in jar_set("kafka")}
    assert {("kafka_2.13", "4.3.1"), ("kafka-tools", "4.3.1"), ("log4j-slf4j-impl", "2.25.4")} <= kafka
    zookeeper = {(jar.name, jar.version) for jar in jar_set("zookeeper")}
    assert {("zookeeper", "3.9.5"), ("log4j-slf4j2-impl", "2.25.4")} <= zookeeper


def test_the_lock_has_spark_s_connector_of_pyspark_s_version_and_what_it_needs() -> None:
    spark = {(jar.name, jar.version) for jar in jar_set("spark")}
    assert spark == {
        ("spark-sql-kafka-0-10_2.13", importlib.metadata.version("pyspark")),
        ("spark-token-provider-kafka-0-10_2.13", importlib.metadata.version("pyspark")),
        ("kafka-clients", "3.9.2"),
        ("commons-pool2", "2.13.1"),
    }


def test_amazons_jar_holds_all_that_it_needs() -> None:
    (jar,) = jar_set("msk")
    assert jar.path == f"software/amazon/msk/aws-msk-iam-auth/{jar.version}/aws-msk-iam-auth-{jar.version}-all.jar"


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


@pytest.mark.parametrize("version", kafka_versions())
def test_every_version_of_kafka_has_its_own_broker_and_what_lets_it_log(version: str) -> None:
    jars = {jar.name: jar.version for jar in jar_set(kafka_set(version))}
    assert jars["kafka_2.13"] == jars["kafka-clients"] == jars["kafka-metadata"] == version
    assert ("slf4j-reload4j" if version.startswith("3.") else "log4j-slf4j-impl") in jars
    assert ("zookeeper" in jars) is version.startswith("3.")


def test_the_versions_of_kafka_are_told_in_their_order_and_others_are_refused() -> None:
    assert kafka_versions() == ("3.7.2", "3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.2", "4.3.0", KAFKA_VERSION, "4.4.0")
    with pytest.raises(ConfigurationError, match=r"Kafka 2\.8\.0 is not among the locked versions: 3\.7\.2, "):
        kafka_set("2.8.0")


def test_an_unknown_set_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"kafka, kafka-3\.7\.2, .*, msk, spark, zookeeper"):
        jar_set("nonsense")
