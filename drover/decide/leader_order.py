"""The order of replicas under a list of brokers that should not lead: pure arithmetic on lists (R491-2)."""

from collections.abc import Collection


def deprioritise(canonical: tuple[int, ...], listed: Collection[int]) -> tuple[int, ...]:
    """Put listed brokers at the end of a list; both parts keep their order.

    Where all are listed, or none is, that is the canonical order itself.
    """
    last = tuple(broker for broker in canonical if broker in listed)
    if not last:
        return canonical
    return tuple(broker for broker in canonical if broker not in listed) + last


def with_first(order: tuple[int, ...], broker: int) -> tuple[int, ...]:
    """Put one broker of a list first; the others keep their order."""
    return (broker, *(other for other in order if other != broker))


def canonical_after(canonical: tuple[int, ...], replicas: tuple[int, ...]) -> tuple[int, ...]:
    """Return the canonical order of a list that others, steps or rollbacks have made of an earlier one.

    Brokers that stayed keep their canonical order; new ones follow in the list's own order.
    """
    stayed = tuple(broker for broker in canonical if broker in replicas)
    return stayed + tuple(broker for broker in replicas if broker not in canonical)
