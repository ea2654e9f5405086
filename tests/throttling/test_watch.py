"""The rounds in which throttles in force are read again."""

from drover.events.partitions import TopicPartition
from drover.events.plans import PlanThrottleSet
from drover.events.throttles import NO_RATES
from drover.reconcile.throttles.demand import Demand
from drover.reconcile.throttles.watch import PORTION, WATCH_MS, Watch
from drover.state.cluster import ClusterState
from drover.state.throttles import BrokerThrottle, TopicThrottle
from tests.reassignment.support import CLUSTER, accepted, intended, opened, queued, state_after

OURS = BrokerThrottle(NO_RATES, NO_RATES, pending=False, release=False)
ROUND = ((1, 2, 4), ("orders",))


def moving() -> tuple[ClusterState, Demand]:
    """One partition copies from [1,2] to [1,4] behind a throttle that is in force; broker 9 is being released."""
    key = TopicPartition("orders", 0)
    throttle = PlanThrottleSet(cluster=CLUSTER, plan="p", bytes_per_second=5)
    moves = (queued(key, (1, 2), (1, 4)), intended((1, 2), (1, 2, 4), key=key), accepted(key=key))
    state = state_after([opened(), throttle, *moves])
    state.broker_throttles.update(dict.fromkeys((1, 2, 4, 9), OURS))
    state.topic_throttles["orders"] = TopicThrottle()
    return state, Demand(state)


def test_what_moves_need_is_read_once_in_each_round() -> None:
    watch, (state, demand) = Watch(), moving()
    assert watch.portion(1000, state, demand) == ROUND
    assert watch.portion(1000, state, demand) == ((), ())
    assert watch.due_ms(1000, demand) == 1000 + WATCH_MS
    assert watch.portion(999 + WATCH_MS, state, demand) == ((), ())
    assert watch.portion(1000 + WATCH_MS, state, demand) == ROUND


def test_a_round_over_many_topics_goes_in_portions() -> None:
    watch, (state, demand) = Watch(), moving()
    for number in range(PORTION):
        state.topic_throttles[f"t{number}"] = TopicThrottle()
        demand.topics[f"t{number}"] = demand.topics["orders"]
    first, second = watch.portion(0, state, demand), watch.portion(0, state, demand)
    assert (len(first[1]), len(second[1])) == (PORTION, 1)
    assert watch.portion(0, state, demand) == ((), ())


def test_without_moves_there_are_no_rounds() -> None:
    watch, state = Watch(), ClusterState(CLUSTER)
    state.broker_throttles[1] = OURS
    assert watch.portion(1000, state, Demand(state)) == ((), ())
    assert watch.due_ms(1000, Demand(state)) is None
