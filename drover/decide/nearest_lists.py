"""The nearest list that Kafka accepts, if an earlier list names brokers that are no longer registered."""

from collections.abc import Iterator, Sequence

from drover.brokers import Brokers
from drover.facts import PartitionFacts


def nearest_list(wanted: Sequence[int], seen: PartitionFacts | None, brokers: Brokers) -> tuple[int, ...]:
    """Return a list without its unregistered brokers, filled up with present replicas to as many as it had.

    Present replicas in sync come first. `seen` is the partition now, None where it was not looked at. A list without
    unregistered brokers is returned as it is, and so is one that would be empty.
    """
    unregistered = set(brokers.unregistered(wanted))
    kept = tuple(broker for broker in wanted if broker not in unregistered)
    if not unregistered:
        return kept
    present = () if seen is None else _fit(seen, brokers)
    fill = [broker for broker in present if broker not in kept]
    return (*kept, *fill[: len(wanted) - len(kept)]) or tuple(wanted)


def _fit(seen: PartitionFacts, brokers: Brokers) -> Iterator[int]:
    """Yield the present replicas that may stay, those in sync first."""
    registered = [broker for broker in seen.replicas if not brokers.unregistered((broker,))]
    yield from (broker for broker in registered if broker in seen.isr)
    yield from (broker for broker in registered if broker not in seen.isr)


def nearest_remark(missing: Sequence[int]) -> str:
    """Name the brokers that were dropped from the lists."""
    names = ", ".join(map(str, sorted(missing)))
    return f"broker {names} is not registered with Kafka any more: its replicas do not come back"
