"""PURE: remarks about brokers that were never seen, which commands may name before the brokers join."""

from collections.abc import Collection

from msgspec.structs import replace

from drover.decide.decision import Decision, Facts

NAMED_AT_MOST = 10


def telling_unseen(
    decision: Decision, named: Collection[int], cluster: str, known_brokers: Collection[int], facts: Facts, *, done: str
) -> Decision:
    """Say which of the brokers that a command names were never seen; `done` is what was done with them all the same.

    `known_brokers` are those that the log knows of. Nothing is said while no broker at all is known.
    """
    seen = {*known_brokers, *facts.live_brokers, *facts.unreachable}
    unseen = sorted(set(named).difference(seen))
    if decision.refusals or not seen or not unseen:
        return decision
    some = ", ".join(map(str, unseen[:NAMED_AT_MOST])) + (" and others" if len(unseen) > NAMED_AT_MOST else "")
    said = f"no broker {some} was ever seen in {cluster}: {done} all the same, for when it comes"
    return replace(decision, remarks=(*decision.remarks, said))
