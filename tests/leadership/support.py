"""A model cluster with one topic, and the commands about its leaders."""

import itertools
from typing import Any

from drover.events.commands import BalanceLeaders, Blacklist, Demote, Restore
from drover.events.leadership import LeaderElectionIntended, LeaderOrdersIntended
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallIntended
from drover.state.scheduling import Limits
from tests.shard.world import CLUSTER, World

LISTS = {0: (3, 1, 2), 1: (1, 3, 2), 2: (1, 2, 4), 3: (3, 4, 1)}
KEYS = tuple(TopicPartition("t", number) for number in LISTS)
FIRST = KEYS[0]
# The lists while broker 3 is listed.
WITHOUT_3 = {0: (1, 2, 3), 1: (1, 2, 3), 2: (1, 2, 4), 3: (4, 1, 3)}
_numbers = itertools.count(1)


def world(*, limits: Limits | None = None, partition_bytes: int = 0, **model: Any) -> World:
    made = World(limits=limits, **model)
    made.model.create_topic("t", LISTS, partition_bytes=partition_bytes)
    return made


def lazy(**model: Any) -> World:
    return world(limits=Limits(lazy_leadership=True), **model)


def _common(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"{name}-{next(_numbers)}", "cluster": CLUSTER, "by": "ana", "reason": "slow disk", **fields}


def blacklist(*brokers: int, **fields: Any) -> Blacklist:
    return Blacklist(**_common("list", fields), brokers=brokers)


def demote(broker: int, **fields: Any) -> Demote:
    return Demote(**_common("demote", fields), broker=broker)


def restore(broker: int, **fields: Any) -> Restore:
    return Restore(**_common("restore", fields), broker=broker)


def balance(**fields: Any) -> BalanceLeaders:
    return BalanceLeaders(**_common("balance", fields))


def leader(made: World, key: TopicPartition = FIRST) -> int | None:
    found = made.model.partition(key)
    assert found is not None
    return found.leader


def leaders(made: World) -> list[int | None]:
    return [leader(made, key) for key in KEYS]


def lists(made: World) -> dict[int, tuple[int, ...]]:
    return {key.partition: made.replicas(key) for key in KEYS}


def own_calls(made: World) -> int:
    """How many calls were intended for a partition."""
    kinds = CallIntended | LeaderElectionIntended | LeaderOrdersIntended
    return sum(isinstance(event, kinds) for event in made.events())


async def until_intended(made: World) -> None:
    """Look and decide until order calls are intended; their effects are held back."""
    made.hold_effects = True
    for _ in range(10):
        if made.held:
            break
        made.model.advance(100)
        await made.look()
        await made.turn()
    assert made.state.intended_orders
    made.hold_effects = False
