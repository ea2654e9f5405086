"""What brokers say of their versions, and the traits that follow."""

import dataclasses

import pytest

from drover.events.traits import Completion, Retarget, Traits
from drover.traits import LATEST, BrokerVersion, known_traits, traits_of, version_of

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


def test_a_release_that_nobody_has_seen_gets_the_careful_reading_of_each_trait() -> None:
    traits = traits_of([BrokerVersion(99, 99, fetch_version=30, elr_version=1)])
    assert traits is not None
    assert traits == Traits(kafka=traits.kafka)
    assert (traits.completion, traits.is_known, traits.with_elr) == (Completion.TARGET, False, False)
    assert not traits.takes_dead_destinations
    assert "99" in str(traits)
    assert "read with care" in str(traits)


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
