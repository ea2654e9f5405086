"""Rows about leaders, from the state of one cluster: counts, brokers that should not lead, and waiting partitions."""

from typing import Any

from drover.state.leaders import LeadershipState

# The most partitions shown of each kind; all of them are counted.
SHOWN = 100


def leaders_document(state: LeadershipState) -> dict[str, Any]:
    """Return the leaders for programs; fields may be added and never changed.

    `leaders` and `preferred` are None for a broker that was never counted; `counted_ms` is the time of the count.
    """
    waiting = sorted(state.waiting.items())
    left_alone = sorted((key, order) for key, order in state.orders.items() if order.left_alone)
    balance = state.balance
    return {
        "cluster": state.name,
        "brokers": [_broker(state, broker) for broker in sorted({*state.leader_counts, *state.blacklist})],
        "counted_ms": max((tally.at_ms for tally in state.leader_counts.values()), default=None),
        "reordered": sum(not order.left_alone for order in state.orders.values()),
        "electing": len(state.elections),
        "waiting": [
            {"topic": key.topic, "partition": key.partition, "why": wait.why.value, "detail": wait.detail}
            | {"since_ms": wait.since_ms}
            for key, wait in waiting[:SHOWN]
        ],
        "waiting_count": len(waiting),
        "left_alone": [
            {"topic": key.topic, "partition": key.partition, "replicas": list(order.replicas)}
            | {"canonical": list(order.canonical), "since_ms": order.since_ms}
            for key, order in left_alone[:SHOWN]
        ],
        "left_alone_count": len(left_alone),
        "balance": None
        if balance is None
        else {"by": balance.by, "reason": balance.reason, "since_ms": balance.since_ms, "elected": balance.elected}
        | {"topics": None if balance.topics is None else list(balance.topics)},
    }


def _broker(state: LeadershipState, broker: int) -> dict[str, Any]:
    tally, listing = state.leader_counts.get(broker), state.listings.get(broker)
    row: dict[str, Any] = {
        "broker": broker,
        "leaders": None if tally is None else tally.leaders,
        "preferred": None if tally is None else tally.preferred,
        "listed": broker in state.blacklist,
    }
    for name in ("since_ms", "by", "reason", "until_ms", "until_in_sync", "topics"):
        row[name] = None if listing is None else getattr(listing, name)
    if row["topics"] is not None:
        row["topics"] = list(row["topics"])
    return row
