"""What brokers say of their versions, and the traits that follow."""

import dataclasses

import pytest

from drover.events.traits import Completion, Retarget, Traits
from drover.traits import LATEST, BrokerVersion, known_traits, traits_of, version_of
from tests.cluster.support import expected_traits

V43 = version_of(LATEST)
V39 = BrokerVersion(supported_metadata_version=21, metadata_version=21, fetch_version=17)
IN_ZOOKEEPER_MODE = BrokerVersion(supported_metadata_version=None, metadata_version=None, fetch_version=17)


@pytest.mark.parametrize(
    ("kafka", "completion"),
    [
        ("3.7", Completion.ADDED),
        ("3.8", Completion.TARGET),
        ("3.9", Completion.TARGET),
        ("4.0", Completion.TARGET),
        ("4.1", Completion.TARGET),
        ("4.2", Completion.TARGET),
        ("4.3", Completion.ADDED_UNLESS_SHRINKING),
        ("4.4", Completion.ADDED_UNLESS_SHRINKING),
    ],
)
def test_a_known_release_has_the_traits_that_were_seen(kafka: str, completion: Completion) -> None:
    traits = known_traits(kafka)
    assert (traits.kafka, traits.completion, traits.is_known) == (kafka, completion, True)
    assert traits_of([version_of(traits)] * 3) == traits


def test_a_setting_for_unclean_elections_counts_with_kraft_since_3_9() -> None:
    assert [known_traits(kafka).elects_unclean for kafka in ("3.7", "3.8", "3.9", "4.3")] == [False, False, True, True]
    assert known_traits("3.9", zookeeper_mode=True).elects_unclean


def test_zookeeper_mode_compares_with_the_original_and_refuses_dead_destinations() -> None:
    traits = known_traits("3.9", zookeeper_mode=True)
    assert (traits.completion, traits.retarget) == (Completion.TARGET, Retarget.ORIGINAL)
    assert not traits.takes_dead_destinations
    assert "ZooKeeper mode" in str(traits)


def test_a_release_in_zookeeper_mode_that_nobody_has_seen_is_read_with_care() -> None:
    traits = traits_of([BrokerVersion(supported_metadata_version=None, metadata_version=None, fetch_version=11)])
    assert traits == Traits(kafka="3", retarget=Retarget.ORIGINAL, zookeeper_mode=True)


def test_brokers_of_both_modes_are_a_migration() -> None:
    traits = traits_of([IN_ZOOKEEPER_MODE, V39])
    assert traits == Traits(kafka="3 and 3.9", migrates=True)
    assert "migrated from ZooKeeper to KRaft" in str(traits)


@pytest.mark.parametrize(
    ("level", "elr_version", "kafka"),
    [
        (99, 1, "newer than 4.4 (metadata.version 99)"),
        (99, 0, "newer than 4.4 (metadata.version 99)"),
        (31, 1, "of an unknown release (metadata.version 31)"),
        (18, 0, "of an unknown release (metadata.version 18)"),
    ],
)
def test_a_release_that_nobody_has_seen_is_read_by_its_features_and_else_with_care(
    level: int, elr_version: int, kafka: str
) -> None:
    traits = traits_of([BrokerVersion(level, level, fetch_version=30, elr_version=elr_version)])
    assert traits == Traits(kafka=kafka, with_elr=elr_version > 0)
    assert (traits.completion, traits.is_known, traits.takes_dead_destinations) == (Completion.TARGET, False, False)
    assert str(traits).startswith(f"Kafka {kafka} with KRaft, read with care")


def test_the_contract_suite_starts_on_a_release_that_nobody_has_seen_by_what_its_brokers_say() -> None:
    unseen = BrokerVersion(99, 99, fetch_version=30, elr_version=1)
    assert expected_traits("9.9.0", [unseen] * 3) == traits_of([unseen])
    assert expected_traits("4.4.0", [unseen] * 3) == known_traits("4.4", with_elr=True)
    with pytest.raises(AssertionError, match=r"no broker of Kafka 9\.9\.0 says its version"):
        expected_traits("9.9.0", [])


def test_brokers_that_differ_are_an_upgrade_under_way() -> None:
    traits = traits_of([V43, V39, V39])
    assert traits == Traits(kafka="3.9 and 4.3")
    assert traits_of([V43, V43]) == LATEST


def test_brokers_whose_controllers_may_still_be_older_are_read_with_care() -> None:
    """All brokers are upgraded, and nobody can ask the controllers: only a level in force tells what they know."""
    half_way = dataclasses.replace(V43, metadata_version=29)
    traits = traits_of([half_way] * 3)
    assert traits is not None
    assert (traits.completion, traits.is_known, traits.takes_dead_destinations) == (Completion.TARGET, False, True)
    assert str(traits).startswith("Kafka 4.3 (metadata.version of 4.2 or before) with KRaft, read with care")
    assert traits_of([half_way, V43]) == Traits(kafka="4.3 and 4.3 (metadata.version of 4.2 or before)")


def test_an_older_level_in_force_is_no_doubt_where_all_releases_since_behave_alike() -> None:
    traits = traits_of([BrokerVersion(supported_metadata_version=29, metadata_version=20, fetch_version=17)])
    assert traits is not None
    assert (traits.kafka, traits.completion, traits.is_known) == ("4.2", Completion.TARGET, True)


def test_brokers_that_say_nothing_tell_nothing() -> None:
    assert traits_of([]) is None
