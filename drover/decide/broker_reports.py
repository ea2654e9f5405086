"""Decide reports of failed and returned brokers."""

from drover.decide.decision import Decision, Facts, refuse
from drover.events.brokers import BrokerFailureRecorded, BrokerReturnRecorded
from drover.events.commands import BrokerFailed, BrokerReturned
from drover.events.healing import BrokerOutageEnded, BrokerOutageNoted, OutageEnd
from drover.events.records import AnyEvent
from drover.events.refusals import RefusalCode
from drover.state.cluster import ClusterState
from drover.state.healing import ALIVE_ENDS_REPORT_MS

# More than any cluster has. A report may name any number, and each is remembered until the broker returns.
MAX_FAILED_BROKERS = 1000


def decide_broker_failed(command: BrokerFailed, state: ClusterState, facts: Facts) -> Decision:
    """R46-1: the first report's time stands until the broker returns; no report is about the future.

    A report about a broker that was last seen alive is recorded with a remark: it counts once the broker is not seen
    alive any more. Where healing is set up, the timer of any other broker runs from the record of this decision, since
    a client's clock may be wrong.
    """
    alive = _alive_remarks(command.broker, facts)
    earlier_ms = state.failed_brokers.get(command.broker)
    if earlier_ms is not None:
        since = f"broker {command.broker} was reported as failed before: the time of that report holds"
        return Decision(remarks=(since, *alive))
    if len(state.failed_brokers) >= MAX_FAILED_BROKERS:
        detail = (
            f"{MAX_FAILED_BROKERS} brokers of {state.name} are reported as failed already: report those that returned"
        )
        return refuse(RefusalCode.TOO_LARGE, detail)
    unknown = _unknown(command.broker, state, facts)
    if unknown is not None:
        return unknown
    at_ms, remarks = _bounded(command.at_ms, facts)
    event = BrokerFailureRecorded(
        cluster=state.name,
        broker=command.broker,
        failed_at_ms=at_ms,
        by=command.by,
        reason=command.reason,
    )
    noted: tuple[AnyEvent, ...] = ()
    is_noted = command.broker in state.absent_brokers or command.broker in state.emptied_brokers
    if state.limits.healing is not None and not alive and not is_noted:
        noted = (BrokerOutageNoted(cluster=state.name, broker=command.broker, seen=False),)
    return Decision(events=(event, *noted), remarks=(*remarks, *alive))


def _alive_remarks(broker: int, facts: Facts) -> tuple[str, ...]:
    if facts.brokers.dead((broker,)):
        return ()
    remark = (
        f"broker {broker} is alive by the last look at the cluster: the report counts only while it is not, and ends "
        f"by itself once the broker has been seen alive for {ALIVE_ENDS_REPORT_MS // 1000} s"
    )
    return (remark,)


def _unknown(broker: int, state: ClusterState, facts: Facts) -> Decision | None:
    """Refuse a report about a broker that was never seen, because a report may name any number."""
    if broker in {*facts.live_brokers, *facts.unreachable, *state.known_brokers, *state.absent_brokers}:
        return None
    if any(broker in moving.original or broker in moving.current for moving in state.reassignments.values()):
        return None
    if not (facts.live_brokers or state.known_brokers):
        detail = f"the brokers of {state.name} are not known yet: report it again once a worker has reached the cluster"
        return refuse(RefusalCode.CLUSTER_UNAVAILABLE, detail)
    seen = ", ".join(map(str, sorted({*state.known_brokers, *facts.live_brokers, *facts.unreachable})))
    detail = f"Drover has never seen a broker {broker} in {state.name}, and moves no replica of it; it has seen {seen}"
    return refuse(RefusalCode.UNKNOWN_BROKER, detail)


def decide_broker_returned(command: BrokerReturned, state: ClusterState, facts: Facts) -> Decision:
    """End the failure (R46-2); a return dated before the failure is outdated and has no effect."""
    failed_at_ms = state.failed_brokers.get(command.broker)
    if failed_at_ms is None:
        return Decision(remarks=(f"broker {command.broker} was not reported as failed",))
    at_ms, remarks = _bounded(command.at_ms, facts)
    # A log may hold a failure in the future, from a version that did not bound such times; a return ends it.
    if at_ms < failed_at_ms and not (facts.appended_ms is not None and failed_at_ms > facts.appended_ms):
        return Decision(remarks=(f"broker {command.broker} failed after that: it remains reported as failed",))
    event = BrokerReturnRecorded(
        cluster=state.name,
        broker=command.broker,
        failed_at_ms=failed_at_ms,
        returned_at_ms=at_ms,
        by=command.by,
        reason=command.reason,
    )
    ended: tuple[AnyEvent, ...] = ()
    if command.broker in state.absent_brokers:
        why = OutageEnd.REPORTED_BACK
        ended = (BrokerOutageEnded(cluster=state.name, broker=command.broker, why=why),)
    return Decision(events=(event, *ended), remarks=remarks)


def _bounded(at_ms: int, facts: Facts) -> tuple[int, tuple[str, ...]]:
    """Return the time of a report, at most the broker's time of its record."""
    if facts.appended_ms is None or at_ms <= facts.appended_ms:
        return at_ms, ()
    ahead_s = (at_ms - facts.appended_ms) / 1000
    return facts.appended_ms, (f"the time is {ahead_s:.3f} s in the future by Kafka's clock: Kafka's time was taken",)
