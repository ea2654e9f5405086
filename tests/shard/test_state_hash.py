"""The state hash depends on the state alone: not on which of two equal objects a field holds."""

import sys
from enum import Enum

import msgspec
import pytest

from drover.events.throttles import Entries
from drover.state.cluster import ClusterState
from drover.state.declared import ClusterSlice
from drover.state.hashing import is_hash_due, state_hash
from drover.state.plans import Plan
from drover.state.scheduling import Limits
from drover.state.throttles import TopicThrottle

# The modules of all slices, so that a new one cannot be forgotten.
MODULES = sorted({base.__module__ for base in ClusterState.__mro__ if issubclass(base, ClusterSlice)})
STRUCTS = tuple(
    kind
    for module in MODULES
    for kind in vars(sys.modules[module]).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module
)


@pytest.mark.parametrize("kind", STRUCTS)
def test_only_defaults_that_exist_once_are_left_out_by_identity(kind: type[msgspec.Struct]) -> None:
    assert len(MODULES) > 5
    defaults = [field.default for field in msgspec.structs.fields(kind) if not field.required]
    exist_once = all(value in (None, False, True, 0, ()) or isinstance(value, Enum) for value in defaults)
    assert exist_once or not kind.__struct_config__.omit_defaults


def test_equal_states_of_different_objects_have_one_hash() -> None:
    first, second = ClusterState("c"), ClusterState("c")
    first.limits, second.limits = Limits(), Limits(max_partitions_in_flight=int("1250"))
    first.topic_throttles["t"] = TopicThrottle(left=True)
    second.topic_throttles["t"] = TopicThrottle(left=True, present=Entries((), ()))
    assert state_hash({"c": first}) == state_hash({"c": second})
    second.limits = Limits(max_partitions_in_flight=7)
    assert state_hash({"c": first}) != state_hash({"c": second})


@pytest.mark.parametrize(
    ("plans", "due"), [(0, [1000, 2000, 3000]), (1000, [1000, 2000, 3000]), (1001, [2000]), (2001, [])]
)
def test_a_state_is_hashed_more_rarely_the_more_there_is_to_hash(plans: int, due: list[int]) -> None:
    state, other = ClusterState("c"), ClusterState("d")
    for number in range(plans):
        one = (state, other)[number % 2]
        one.put_plan(Plan(str(number), "ana", "test", 0))
        one.ended_plans[str(number)] = 0  # covered by no hash
    assert [number for number in range(1, 3001) if is_hash_due(number, {"c": state, "d": other})] == due
