"""PURE: remarks about brokers that were never seen, which commands may name before the brokers join."""

from collections.abc import Collection

from msgspec.structs import replace

from drover.decide.decision import Decision, Facts

NAMED_AT_MOST = 10


def with_unseen_remark(
    decision: Decision, named: Collection[int], cluster: str, known_brokers: Collection[int], facts: Facts, *, done: str
) -> Decision:
    """Add a remark about the brokers that a command names and that were never seen; `done` says what it does to them.

    `known_brokers` are the brokers in the log. While no broker at all is known, there is no remark.
    """
    seen = {*known_brokers, *facts.live_brokers, *facts.unreachable}
    unseen = sorted(set(named).difference(seen))
    if decision.refusals or not seen or not unseen:
        return decision
    some = ", ".join(map(str, unseen[:NAMED_AT_MOST])) + (" and others" if len(unseen) > NAMED_AT_MOST else "")
    said = f"no broker {some} was ever seen in {cluster}: {done} all the same, for when it comes"
    return replace(decision, remarks=(*decision.remarks, said))
