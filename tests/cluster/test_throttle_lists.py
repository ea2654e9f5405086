"""How throttle changes become config operations."""

import pytest

from drover.cluster.port import AddThrottledReplicas, RemoveThrottledReplicas, SetBrokerRates
from drover.cluster.throttle_lists import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    MAX_VALUE_BYTES,
    ConfigOperation,
    OperationKind,
    has_taken_effect,
    list_operations,
    parse_rates,
    parse_throttled,
    rate_operations,
    waves,
)
from drover.facts import BrokerRates, CallResult, ThrottledReplicas

SET, DELETE, APPEND, SUBTRACT = OperationKind
THERE = ThrottledReplicas(("0:1", "0:2"), ("0:4",))


def test_lists_and_rates_are_read_from_what_is_set() -> None:
    configs = {LEADER_REPLICAS: "0:1, 0:2", FOLLOWER_REPLICAS: "", LEADER_RATE: "7"}
    assert parse_throttled(configs) == ThrottledReplicas(("0:1", "0:2"), ())
    assert parse_rates(configs) == BrokerRates(7, None)


def test_a_rate_without_a_value_is_deleted() -> None:
    assert rate_operations(BrokerRates(5, None)) == (
        ConfigOperation(LEADER_RATE, SET, "5"),
        ConfigOperation(FOLLOWER_RATE, DELETE),
    )


def test_entries_are_appended_that_seem_to_be_there_since_a_broker_may_show_an_old_list() -> None:
    change = AddThrottledReplicas("t", ThrottledReplicas(("0:2", "0:3"), ("0:4",)))
    assert list_operations(change, THERE) == (
        ConfigOperation(LEADER_REPLICAS, APPEND, "0:2,0:3"),
        ConfigOperation(FOLLOWER_REPLICAS, APPEND, "0:4"),
    )


def test_only_present_entries_are_subtracted_and_an_emptied_list_is_deleted() -> None:
    change = RemoveThrottledReplicas("t", ThrottledReplicas(("0:2", "0:3"), ("0:4",)))
    assert list_operations(change, THERE) == (
        ConfigOperation(LEADER_REPLICAS, SUBTRACT, "0:2"),
        ConfigOperation(FOLLOWER_REPLICAS, DELETE),
    )


def test_a_list_is_not_deleted_while_entries_stay_that_an_old_list_does_not_show() -> None:
    """A broker that was behind showed only what was to go, and what was just added for a move went as well."""
    change = RemoveThrottledReplicas("t", THERE, kept=ThrottledReplicas(("1:1",), ()))
    assert list_operations(change, THERE) == (
        ConfigOperation(LEADER_REPLICAS, SUBTRACT, ",".join(THERE.leader)),
        ConfigOperation(FOLLOWER_REPLICAS, DELETE),
    )


@pytest.mark.parametrize("entry", ["*", "0", "0:1,0:2", "a:1", ""])
def test_what_is_no_entry_is_refused(entry: str) -> None:
    result = list_operations(AddThrottledReplicas("t", ThrottledReplicas((entry,), ())), THERE)
    assert isinstance(result, CallResult)
    assert result.code == 40


def test_the_longest_list_that_fits_is_taken_and_one_entry_more_is_not() -> None:
    entries = tuple(f"{number}:1" for number in range(10_000, 10_000 + (MAX_VALUE_BYTES + 1) // 8))
    assert len(",".join(entries)) == MAX_VALUE_BYTES
    empty = ThrottledReplicas((), ())
    assert isinstance(list_operations(AddThrottledReplicas("t", ThrottledReplicas(entries, ())), empty), tuple)
    more = AddThrottledReplicas("t", ThrottledReplicas((*entries, "1:1"), ()))
    assert isinstance(list_operations(more, empty), CallResult)


def test_waves_name_each_resource_once_and_keep_its_order() -> None:
    add, remove = AddThrottledReplicas("t", THERE), RemoveThrottledReplicas("t", THERE)
    fast, slow = SetBrokerRates(1, BrokerRates(9, 9)), SetBrokerRates(1, BrokerRates(1, 1))
    other = SetBrokerRates(2, BrokerRates(1, 1))
    assert waves([add, fast, remove, slow, other, add]) == [[add, fast, other], [remove, slow]]


@pytest.mark.parametrize(
    ("operation", "configs", "visible"),
    [
        (ConfigOperation(LEADER_REPLICAS, APPEND, "0:1"), {LEADER_REPLICAS: "0:2,0:1"}, True),
        (ConfigOperation(LEADER_REPLICAS, APPEND, "0:1"), {LEADER_REPLICAS: "0:2"}, False),
        (ConfigOperation(LEADER_REPLICAS, SUBTRACT, "0:1"), {LEADER_REPLICAS: "0:2"}, True),
        (ConfigOperation(LEADER_REPLICAS, SUBTRACT, "0:1"), {LEADER_REPLICAS: "0:2,0:1"}, False),
        (ConfigOperation(LEADER_REPLICAS, DELETE), {}, True),
        (ConfigOperation(LEADER_REPLICAS, DELETE), {LEADER_REPLICAS: ""}, False),
    ],
)
def test_an_operation_has_taken_effect_when_a_read_shows_it(
    operation: ConfigOperation, configs: dict[str, str], visible: bool
) -> None:
    assert has_taken_effect([operation], configs) is visible
