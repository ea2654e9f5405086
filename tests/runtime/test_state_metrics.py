"""What `/metrics` reads off the state, and off each record."""

from prometheus_client import CollectorRegistry, generate_latest

from drover.agents.outcome_metrics import Ended, counted, report
from drover.agents.state_metrics import METRICS, StateMetrics
from drover.events.codec import Malformed
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker, ReassignmentCompleted, StepConfirmed
from drover.events.records import SCHEMA_VERSION, AnyEvent, Batch, Cursor, Outcome
from drover.events.throttles import Rates
from drover.events.topics import TopicNames
from drover.service.metrics import Metrics
from drover.shard.messages import Arrival, ProposedBatch
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.plans import Plan
from drover.state.reassignment import Block, Reassignment
from drover.state.scheduling import Freeze, QueueEntry
from drover.state.throttles import BrokerThrottle
from drover.state.unmanaged import UnmanagedMove

NOW_MS = 100_000
TOPICS = TopicNames().commands


def move(partition: int, phase: Phase, *, since_ms: int, block: Block | None = None, copied: int = 0) -> Reassignment:
    return Reassignment(
        key=TopicPartition("t", partition), topic_id="id", plan="p", number=partition, original=(1, 2), target=(3, 4),
        created_ms=10_000, phase=phase, since_ms=since_ms, current=(1, 2), block=block, bytes_copied=copied,
    )  # fmt: skip


def full() -> ClusterState:
    state = ClusterState("prod")
    state.plans["p"] = Plan("p", "ana", "r", 0)
    state.put(move(0, Phase.PENDING, since_ms=70_000))
    state.put(move(1, Phase.COPYING, since_ms=1_000, copied=50))
    state.put(move(2, Phase.CONFIRMED, since_ms=5_000, block=Block(Blocker.NO_LEADER, "", 60_000)))
    state.queue[TopicPartition("t", 9)] = QueueEntry("q", "p", (1,), 80_000)
    state.freeze = Freeze("ann", "why", 5)
    state.failed_brokers = {2: 17}
    state.blacklist = (3, 4)
    state.broker_throttles[4] = BrokerThrottle(Rates(None, None), Rates(5, None), pending=False, release=False)
    state.unmanaged[TopicPartition("t", 7)] = UnmanagedMove((3, 1), (3,), (3,), 1000)
    return state


def rendered(*states: ClusterState) -> str:
    registry = CollectorRegistry()
    registry.register(StateMetrics(lambda: states, lambda: NOW_MS))
    return generate_latest(registry).decode()


def test_the_state_is_read_when_somebody_asks() -> None:
    text = rendered(full())
    for line in (
        'drover_reassignments_blocked{cluster="prod",why="no-leader"} 1.0',
        'drover_waiting_oldest_seconds{cluster="prod"} 40.0',
        'drover_queue_entries{cluster="prod"} 1.0',
        'drover_broker_throttle_bytes_per_second{broker="4",cluster="prod",direction="leader"} 5.0',
        'drover_throttles_left{cluster="prod"} 0.0',
        'drover_unmanaged_moves{cluster="prod",never_ends="true"} 1.0',
        'drover_frozen{cluster="prod"} 1.0',
        'drover_limit{cluster="prod",name="max_moves_per_broker"} 5.0',
        'drover_failed_brokers{cluster="prod"} 1.0',
        'drover_listed_brokers{cluster="prod"} 2.0',
        'drover_mismatched_cluster{cluster="prod"} 0.0',
    ):
        assert line in text
    assert 'direction="follower"' not in text


def test_a_throttle_is_left_over_when_nothing_moves() -> None:
    state = ClusterState("prod")
    state.broker_throttles[4] = BrokerThrottle(Rates(None, None), Rates(5, 5), pending=True, release=True)
    assert 'drover_throttles_left{cluster="prod"} 1.0' in rendered(state)
    assert 'drover_waiting_oldest_seconds{cluster="prod"} 0.0' in rendered(state)


def test_without_an_owned_shard_every_metric_is_named_and_empty() -> None:
    text = rendered()
    assert all(f"# TYPE drover_{name} gauge" in text for name in METRICS)
    assert "cluster=" not in text


def proposed(*events: AnyEvent, outcomes: tuple[Outcome, ...] = (), taken: tuple[Arrival, ...] = ()) -> ProposedBatch:
    batch = Batch(
        schema=SCHEMA_VERSION, token=b"t", epoch=1, sequence=1, at_ms=40_000, cursors=(Cursor("id", 0),) * 4,
        previous_hash=b"", outcomes=outcomes, events=events,
    )  # fmt: skip
    return ProposedBatch(batch, b"", taken)


def test_endings_and_bytes_are_counted_once() -> None:
    done = ReassignmentCompleted(cluster="prod", topic="t", partition=1, replicas=(3, 4), bytes_copied=80)
    step = StepConfirmed(cluster="prod", topic="t", partition=2, step=1, replicas=(1, 2, 3), bytes_copied=7)
    record = proposed(done, step)
    found = counted({"prod": full()}, record)
    assert found.endings == (Ended("prod", "completed", 30.0),)
    # 50 of the 80 were counted when their steps were confirmed.
    assert found.copied == (("prod", 30), ("prod", 7))
    metrics = Metrics()
    report(metrics, found, record, TOPICS)
    text = metrics.render().decode()
    assert 'drover_reassignments_ended_total{cluster="prod",outcome="completed"} 1.0' in text
    assert 'drover_copied_bytes_total{cluster="prod"} 37.0' in text
    assert 'drover_reassignment_seconds_bucket{cluster="prod",le="60.0",outcome="completed"} 1.0' in text


def test_how_long_a_command_waited_is_told_and_nobody_makes_labels_of_their_own() -> None:
    def outcome(id_: str, type_: str, offset: int) -> Outcome:
        return Outcome(
            id=id_, cluster="prod", type=type_, by="me", reason="why", topic=TOPICS[1], offset=offset, verdict="refused"
        )

    arrivals = tuple(Arrival(1, offset, 39_500, b"", Malformed("no")) for offset in (3, 4))
    record = proposed(outcomes=(outcome("a", "freeze", 3), outcome("b", "x" * 500, 4)), taken=arrivals)
    metrics = Metrics()
    report(metrics, counted({}, record), record, TOPICS)
    text = metrics.render().decode()
    assert 'drover_command_outcome_seconds_sum{type="freeze"} 0.5' in text
    assert 'drover_commands_total{type="unknown",verdict="refused"} 1.0' in text
    assert "xxx" not in text
