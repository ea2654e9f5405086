"""Throttles that Kafka refuses to set or to show: which answers refuse, and the block of a step that waits for one.

An alter policy or a missing ACL makes Kafka refuse. Nothing was changed then, and the answer stays the same until an
operator changes the policy or the ACL, so the write is repeated at a slow pace.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from drover.events.reassignments import Blocker
from drover.facts import (
    NONE,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    CallResult,
)
from drover.reconcile.messages import ThrottlesRead
from drover.state.reassignment import Block, Reassignment
from drover.state.throttles import ThrottlingState

# A write that Kafka refuses is repeated at this interval.
REFUSED_RETRY_MS = 10_000

RATES = "leader.replication.throttled.rate and follower.replication.throttled.rate"
LISTS = "leader.replication.throttled.replicas and follower.replication.throttled.replicas"

# BROKER_NOT_AVAILABLE, NETWORK_EXCEPTION, LISTENER_NOT_FOUND and THROTTLING_QUOTA_EXCEEDED pass by themselves.
_TRANSIENT = frozenset(
    {NONE, UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION, REQUEST_TIMED_OUT, NOT_CONTROLLER, 8, 13, 72, 89}
)


def is_refused(result: CallResult) -> bool:
    """Whether Kafka refuses a change of configs for a reason that only an operator can remove."""
    return result.code not in _TRANSIENT


@dataclass(slots=True)
class Unreadable:
    """Brokers and topics whose throttle settings Kafka refused to show when they were last asked for."""

    brokers: dict[int, CallResult] = field(default_factory=dict)
    topics: dict[str, CallResult] = field(default_factory=dict)

    def take(self, read: ThrottlesRead) -> None:
        """Note the settings that an answer refuses to show, and drop those that it shows."""
        self.brokers.update(read.refused_brokers)
        self.topics.update(read.refused_topics)
        for broker in read.brokers:
            self.brokers.pop(broker, None)
        for topic in read.topics:
            self.topics.pop(topic, None)


def refusal_block(
    reassignment: Reassignment, state: ThrottlingState, unreadable: Unreadable, at_ms: int
) -> Block | None:
    """Return the block of a prepared step whose throttle Kafka refuses to set or show; None if it does not."""
    refused = next(_refusals(reassignment, state, unreadable), None)
    if refused is None:
        return None
    detail = (
        f"{refused}: allow it (`drover acls` prints the rights that are needed), or let the plan go without a throttle "
        f"of its own (`drover throttle set {reassignment.plan} none`)"
    )
    return Block(Blocker.THROTTLE_REFUSED, detail, at_ms)


def _refusals(reassignment: Reassignment, state: ThrottlingState, unreadable: Unreadable) -> Iterator[str]:
    step, topic = reassignment.step, reassignment.key.topic
    for broker in () if step is None else (*step.expected, *step.adding):
        yield from refusals_of_broker(state, broker)
        if (answer := unreadable.brokers.get(broker)) is not None:
            yield f"Kafka refuses to show {RATES} of broker {broker}: {answer.in_words}"
    yield from refusals_of_topic(state, topic)
    if (answer := unreadable.topics.get(topic)) is not None:
        yield f"Kafka refuses to show {LISTS} of topic {topic}: {answer.in_words}"


def refusals_of_broker(state: ThrottlingState, broker: int) -> Iterator[str]:
    """Yield why Kafka refuses to set the rates of a broker; nothing if it does not."""
    entry = state.broker_throttles.get(broker)
    if entry is not None and entry.refusal is not None:
        answer = CallResult(entry.refusal.code, entry.refusal.message)
        yield f"Kafka refuses to {'put back' if entry.release else 'set'} {RATES} of broker {broker}: {answer.in_words}"


def refusals_of_topic(state: ThrottlingState, topic: str) -> Iterator[str]:
    """Yield why Kafka refuses to change the lists of a topic; nothing if it does not."""
    entry = state.topic_throttles.get(topic)
    if entry is not None and entry.refusal is not None:
        answer = CallResult(entry.refusal.code, entry.refusal.message)
        yield f"Kafka refuses to change {LISTS} of topic {topic}: {answer.in_words}"
