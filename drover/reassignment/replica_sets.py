"""KIP-455's arithmetic: what a target adds and removes, and the steps that lead there."""

from collections.abc import Collection

from drover.reassignment.state import Reassignment, Step


def without(brokers: tuple[int, ...], gone: Collection[int]) -> tuple[int, ...]:
    """List the brokers that are not gone, in their order."""
    return tuple(broker for broker in brokers if broker not in gone)


def adding(current: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """List the brokers that `target` has and `current` has not, in the target's order (R455-7)."""
    return without(target, current)


def removing(current: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """List the brokers that `current` has and `target` has not, in the current order (R455-7)."""
    return without(current, target)


def after_cancel(step: Step) -> tuple[int, ...]:
    """Return the list that Kafka 4.3.1's cancel of a step leaves: the earlier members, in merged order (live fact)."""
    kept = tuple(broker for broker in step.replicas if broker in step.expected)
    return kept + tuple(sorted(removing(step.expected, step.replicas)))


def only_appends(expected: tuple[int, ...], replicas: tuple[int, ...]) -> bool:
    """Whether a step adds replicas at the end and does nothing else: it drops none and moves no leadership."""
    return len(replicas) > len(expected) and replicas[: len(expected)] == expected


def next_step(
    reassignment: Reassignment,
    live: Collection[int],
    leader: int | None,
    max_replicas_per_step: int,
    *,
    appends_first: bool = False,
) -> Step | None:
    """Plan the alter call that comes next; None if only replicas on dead brokers are left to add.

    A target that adds at most `max_replicas_per_step` replicas is one step. Otherwise each step appends that many live
    added replicas, in target order, at the end of the list: with the target's order Kafka's own rebalance would move
    leadership early. The last step then adds nothing and sends the target. `appends_first` asks for such steps also
    where one could do all: the partition lacks replicas in sync, and nothing may be dropped yet. A rollback that
    needs copies is made of such steps as well.
    """
    number = 1 if reassignment.step is None else reassignment.step.number + 1
    current, target = reassignment.current, reassignment.heading
    appends_first = appends_first or reassignment.returning_to is not None
    missing = adding(current, target)
    at_once = len(adding(reassignment.original, target)) <= max_replicas_per_step
    if not missing or (at_once and not (appends_first and not only_appends(current, target))):
        return Step(number, True, current, target, leader)
    grown = tuple(broker for broker in missing if broker in live)[:max_replicas_per_step]
    if not grown:
        return None
    return Step(number, False, current, current + grown, leader)
