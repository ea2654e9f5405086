"""The state hash depends on the state alone: not on which of two equal objects a field holds."""

from enum import Enum

import msgspec
import pytest

from drover.reassignment import foreign, state, waiting
from drover.reassignment.state import ClusterState, Limits, TopicThrottle
from drover.shard.state_hash import state_hash
from events.throttles import Entries

STRUCTS = tuple(
    kind
    for module in (state, waiting, foreign)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__
)


@pytest.mark.parametrize("kind", STRUCTS)
def test_only_defaults_that_exist_once_are_left_out_by_identity(kind: type[msgspec.Struct]) -> None:
    assert STRUCTS
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
