"""A partition that copies behind a throttle, and what was read of its brokers and its topic."""

from drover.events.plans import PlanThrottleSet
from drover.events.reassignments import ReassignmentCompleted
from drover.events.records import AnyEvent
from drover.events.throttles import BrokerThrottleSet, TopicThrottleSet
from drover.facts import BrokerRates, ThrottledReplicas
from drover.fold.evolve import apply
from drover.reconcile.throttles.demand import Demand
from drover.reconcile.throttles.ledger import Read, ThrottlePlan, plan_throttles
from drover.reconcile.throttles.shown_settings import ShownEntries
from drover.state.cluster import ClusterState
from tests.reassignment.support import CLUSTER, KEY, LIVE, accepted, intended, opened, queued, state_after

RATE = 1000
NOWHERE = BrokerRates(None, None)
NO_LISTS = ThrottledReplicas((), ())
OURS = BrokerRates(RATE, RATE)
LISTED = ThrottledReplicas(("0:1", "0:2", "0:3"), ("0:4",))
INVOLVED = (1, 2, 3, 4)


def rate(plan: str, value: int) -> PlanThrottleSet:
    return PlanThrottleSet(cluster=CLUSTER, plan=plan, bytes_per_second=value)


def throttled(value: int = RATE) -> ClusterState:
    """KEY copies from [1,2,3] to [4,2,1] behind a throttle."""
    return state_after([opened(), rate("p", value), queued(), intended(), accepted()])


def fold(state: ClusterState, *events: AnyEvent) -> ClusterState:
    for event in events:
        apply(state, event, 2000)
    return state


def ended() -> ReassignmentCompleted:
    return ReassignmentCompleted(cluster=CLUSTER, topic=KEY.topic, partition=KEY.partition, replicas=(4, 2, 1))


def everything(rates: BrokerRates = NOWHERE, lists: ThrottledReplicas = NO_LISTS) -> Read:
    return Read(dict.fromkeys(range(1, 9), rates), {KEY.topic: ShownEntries.of(lists)})


def planned(
    state: ClusterState, read: Read, live: frozenset[int] = LIVE, overdue: tuple[str, ...] = ()
) -> ThrottlePlan:
    demand = Demand(state)
    brokers, topics = {*demand.brokers, *state.broker_throttles}, {*demand.topics, *state.topic_throttles}
    return plan_throttles(state, demand, live, read, brokers, topics, overdue)


def in_force(value: int = RATE) -> ClusterState:
    """The throttle of KEY is written and answered."""
    state = throttled(value)
    fold(state, *planned(state, everything()).events)
    fold(state, *(BrokerThrottleSet(cluster=CLUSTER, broker=broker) for broker in INVOLVED))
    return fold(state, TopicThrottleSet(cluster=CLUSTER, topic=KEY.topic))
