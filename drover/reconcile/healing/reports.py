"""Ends reports of failed brokers once the broker has been observed alive (R46-2)."""

from collections.abc import Iterator

from drover.brokers import Brokers
from drover.decide.verdict import DROVER
from drover.events.brokers import BrokerReturnRecorded
from drover.state.healing import ALIVE_ENDS_REPORT_MS, HealingState


class ReportWatch:
    """Compares the live brokers with those that are reported as failed; its observations end with the ownership.

    Times are monotonic.
    """

    def __init__(self) -> None:
        # By broker: the time that its report names, and when it was first observed alive after that report.
        self._alive_since_ms: dict[int, tuple[int, int]] = {}

    def events(
        self, state: HealingState, brokers: Brokers, started_ms: int, ended_ms: int, at_ms: int
    ) -> Iterator[BrokerReturnRecorded]:
        """End the reports of brokers that every observation of 30 s has shown alive; `at_ms` is log time."""
        reports = state.failed_brokers
        living = brokers.live | brokers.unreachable
        alive = {broker: reports[broker] for broker in sorted(reports) if broker in living}
        before, self._alive_since_ms = self._alive_since_ms, {}
        for broker, failed_at_ms in alive.items():
            reported_ms, since_ms = before.get(broker, (failed_at_ms, ended_ms))
            if reported_ms != failed_at_ms:
                since_ms = ended_ms
            self._alive_since_ms[broker] = failed_at_ms, since_ms
            if started_ms - since_ms >= ALIVE_ENDS_REPORT_MS:
                yield BrokerReturnRecorded(
                    cluster=state.name,
                    broker=broker,
                    failed_at_ms=failed_at_ms,
                    returned_at_ms=at_ms,
                    by=DROVER,
                    reason=f"it has been seen alive for {ALIVE_ENDS_REPORT_MS // 1000} s",
                )
