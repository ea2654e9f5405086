"""KIP-455's arithmetic: the replicas that a target adds and removes, and those that a cancel leaves."""

from collections.abc import Collection

from drover.state.reassignment import Step


def without(brokers: tuple[int, ...], gone: Collection[int]) -> tuple[int, ...]:
    """List the brokers that are not gone, in their order."""
    return tuple(broker for broker in brokers if broker not in gone)


def adding(current: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """List the brokers that `target` adds to `current`, in the target's order (R455-7)."""
    return without(target, current)


def removing(current: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """List the brokers that `target` removes from `current`, in the current order (R455-7)."""
    return without(current, target)


def after_cancel(step: Step) -> tuple[int, ...]:
    """Return the list that Kafka 4.3.1's cancel of a step leaves: the earlier members, in merged order (live fact)."""
    kept = tuple(broker for broker in step.replicas if broker in step.expected)
    return kept + tuple(sorted(removing(step.expected, step.replicas)))


def only_appends(expected: tuple[int, ...], replicas: tuple[int, ...]) -> bool:
    """Whether a step adds replicas at the end and does nothing else: it drops none and moves no leadership."""
    return len(replicas) > len(expected) and replicas[: len(expected)] == expected
