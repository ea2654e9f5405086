"""Limits in the settings: under their own names and those of the KIPs and of Cruise Control, one name at a time."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from drover.events.healing import HealingLimits
from drover.settings.settings import HealingSettings
from drover.settings.sources import load_settings
from drover.state.limit_names import HEALING, of_section
from drover.state.scheduling import Limits
from tests.runtime.test_settings import complaint

ONE_CLUSTER = '[log]\nbootstrap = "kafka:9092"\n[clusters.one]\nbootstrap = "one:9092"\n'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))


def test_healing_is_set_by_the_names_of_kip_46_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = "[clusters.one.healing]\nkafka.heal.failure.interval = 60000\nkafka_heal_chunk_size = 3\n"
    kip = ONE_CLUSTER + section
    (tmp_path / "kip.toml").write_text(kip)
    limits = load_settings(tmp_path / "kip.toml").clusters["one"].limits.healing
    assert limits == HealingLimits(failure_interval_ms=60_000, chunk_partitions=3)
    both = kip.replace("kafka_heal_chunk_size = 3", "kafka_heal_chunk_size = 3\nchunk_partitions = 3")
    same = "clusters.one.healing: kafka_heal_chunk_size and chunk_partitions are the same setting: choose one"
    assert same in complaint(both, tmp_path)
    assert "kafka_heal_size is no setting" in complaint(kip.replace("heal_chunk_size", "heal_size"), tmp_path)
    monkeypatch.setenv("DROVER_CLUSTERS__ONE__HEALING__KAFKA_HEAL_CHUNK_SIZE", "4")
    limits = load_settings(tmp_path / "kip.toml").clusters["one"].limits.healing
    assert limits == HealingLimits(failure_interval_ms=60_000, chunk_partitions=4)


def test_the_settings_of_healing_are_its_limits(tmp_path: Path) -> None:
    assert HealingSettings().limits == HealingLimits()
    assert [field.name for field in fields(HealingSettings)] == list(HealingLimits.__struct_fields__)
    assert {known.field for known in of_section(HEALING)} == set(HealingLimits.__struct_fields__)
    section = f"{ONE_CLUSTER}[clusters.one.healing]\n"
    for line, said in (
        ("failure_interval_ms = -2", "failure_interval_ms must be -1, which means never, or at least 0"),
        ("chunk_partitions = 0", "chunk_partitions must be at least 1"),
        ("mass_failure_percent = 101", "mass_failure_percent must be at most 100"),
        ("max_bytes_per_day = 0", "max_bytes_per_day must be at least 1"),
        ("disk_limit_percent = 0", "disk_limit_percent must be at least 1"),
    ):
        assert said in complaint(section + line, tmp_path)


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("reassignment.max.concurrent.partition.count = 7", {"max_partitions_in_flight": 7}),
        ('"reassignment.max.concurrent.replica.count" = 7', {"max_replicas_per_step": 7}),
        ("reassignment.max.concurrent.leader.movements = 7", {"max_leader_movements": 7}),
        ("reassignment.parallel.partition.count = 7", {"max_partitions_in_flight": 7}),
        ("num.concurrent.partition.movements.per.broker = 7", {"max_moves_per_broker": 7}),
        ("max.num.cluster.partition.movements = 7", {"max_partitions_in_flight": 7}),
        ("concurrentLeaderMovements = 7", {"max_leader_movements": 7}),
        ("num_concurrent_leader_movements = 7", {"max_leader_movements": 7}),
    ],
)
def test_limits_go_by_the_names_of_kip_435_and_of_cruise_control(
    text: str, limits: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "other.toml").write_text(f"{ONE_CLUSTER}{text}\n")
    assert load_settings(tmp_path / "other.toml").clusters["one"].limits == Limits(**limits, adapts_to_health=True)


def test_a_limit_under_two_names_and_one_that_makes_no_sense_are_refused(tmp_path: Path) -> None:
    twice = "max_moves_per_broker = 3\nnum.concurrent.partition.movements.per.broker = 7\n"
    same = "max_moves_per_broker and num.concurrent.partition.movements.per.broker are the same setting"
    assert same in complaint(ONE_CLUSTER + twice, tmp_path)
    none = "reassignment.max.concurrent.partition.count = 0\n"
    assert "max_partitions_in_flight must be at least 1, and is 0" in complaint(ONE_CLUSTER + none, tmp_path)
    much = "max_leader_movements = 2147483648\n"
    assert "max_leader_movements must be at most 2147483647" in complaint(ONE_CLUSTER + much, tmp_path)
    healing = "[clusters.one.healing]\nmass_failure_percent = 101\n"
    assert "mass_failure_percent must be at most 100" in complaint(ONE_CLUSTER + healing, tmp_path)
