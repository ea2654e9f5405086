"""Outages: brokers in replica lists that are not alive, and brokers that are back (R46-1)."""

from collections.abc import Collection, Iterator

from drover.brokers import Brokers
from drover.events.healing import BrokerOutageEnded, BrokerOutageNoted, OutageEnd
from drover.facts import Survey
from drover.reconcile.debounce import CONFIRM_AFTER_MS
from drover.state.healing import HealingState


class OutageWatch:
    """Compares the live brokers with those in replica lists; its observations end with the ownership.

    Times are monotonic. An absence counts once it was observed twice, 2 s apart, and a survey that began after the
    first still shows replicas of the broker: one that was drained and switched off is in no list any more.
    """

    def __init__(self) -> None:
        self._missing_since_ms: dict[int, int] = {}
        self._assigned: frozenset[int] = frozenset()
        self._surveyed_ms = -1

    @property
    def has_unconfirmed_absence(self) -> bool:
        """Whether a broker is missing that does not count as away yet."""
        return bool(self._missing_since_ms)

    @property
    def has_surveyed(self) -> bool:
        """Whether a survey has shown which brokers have replicas."""
        return self._surveyed_ms >= 0

    def wants_survey(self, now_ms: int) -> bool:
        """Whether an absence can be confirmed by a survey now."""
        waits = (
            since_ms
            for since_ms in self._missing_since_ms.values()
            if now_ms - since_ms >= CONFIRM_AFTER_MS and self._surveyed_ms - since_ms < CONFIRM_AFTER_MS
        )
        return any(True for _ in waits)

    def brokers(self, live: Collection[int]) -> frozenset[int]:
        """List every broker that lives or has replicas."""
        return self._assigned.union(live)

    def take(self, survey: Survey) -> None:
        """Remember which brokers have replicas."""
        # Many partitions have the same list.
        self._assigned = frozenset().union(*{facts.replicas for facts in survey.partitions.values()})
        self._surveyed_ms = survey.started_ms

    def events(
        self, state: HealingState, brokers: Brokers, started_ms: int, ended_ms: int
    ) -> Iterator[BrokerOutageNoted | BrokerOutageEnded]:
        """Record brokers that are away or back, by one observation; an unreachable broker is not away."""
        living = brokers.live | brokers.unreachable
        for broker in sorted(living):
            self._missing_since_ms.pop(broker, None)
            if broker in state.absent_brokers or broker in state.emptied_brokers:
                outage = state.absent_brokers.get(broker)
                was_away = outage is None or outage.seen
                back = OutageEnd.RETURNED if broker in brokers.live else OutageEnd.UNREACHABLE
                why = back if was_away else OutageEnd.STILL_ALIVE
                yield BrokerOutageEnded(cluster=state.name, broker=broker, why=why)
        for broker in sorted(self._assigned.union(state.absent_brokers)):
            if broker not in living:
                yield from self._missed(state, broker, started_ms, ended_ms)

    def _missed(
        self, state: HealingState, broker: int, started_ms: int, ended_ms: int
    ) -> Iterator[BrokerOutageNoted | BrokerOutageEnded]:
        outage = state.absent_brokers.get(broker)
        is_assigned = broker in self._assigned
        if outage is not None and outage.seen and is_assigned:
            return
        since_ms = self._missing_since_ms.setdefault(broker, ended_ms)
        if started_ms - since_ms < CONFIRM_AFTER_MS or self._surveyed_ms - since_ms < CONFIRM_AFTER_MS:
            return
        del self._missing_since_ms[broker]
        if is_assigned:
            yield BrokerOutageNoted(cluster=state.name, broker=broker)
        elif outage is not None:
            yield BrokerOutageEnded(cluster=state.name, broker=broker, why=OutageEnd.NOT_ASSIGNED)
