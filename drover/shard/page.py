"""The record being written: the state as it will be, and the events and outcomes that make it so."""

from collections.abc import Iterable

from drover.reassignment.evolve import apply
from drover.reassignment.evolve_plans import Ending
from drover.reassignment.state import ClusterState, PlanStatus
from drover.reassignment.way_out import succession
from drover.shard.fold import ShardState
from drover.shard.messages import Moment
from drover.shard.track import ClusterTrack
from events.partitions import TopicPartition
from events.plans import PlanExtended, PlanFinished, PlanOpened
from events.reassignments import CallIntended, ReplacementWithdrawn
from events.records import AnyEvent, Outcome
from events.waiting import QueueEntryRemoved

# An announced further command that does not come: after a minute the plan may finish without it.
MORE_WAIT_MS = 60_000


class Page:
    """One draft under way. `write` is the only way in which the state as it will be changes."""

    def __init__(self, ahead: ShardState, tracks: dict[str, ClusterTrack], now: Moment, at_ms: int) -> None:
        self.ahead = ahead
        self.tracks = tracks
        self.now = now
        self.at_ms = at_ms
        self.events: list[AnyEvent] = []
        self.outcomes: list[Outcome] = []
        self.intended: dict[tuple[str, TopicPartition], None] = {}
        self.ended: set[tuple[str, TopicPartition]] = set()
        self._plans: dict[tuple[str, str], None] = {}

    def track(self, cluster: str) -> ClusterTrack:
        """Return what the owner remembers of a cluster."""
        track = self.tracks.get(cluster)
        if track is None:
            track = self.tracks[cluster] = ClusterTrack()
        return track

    def write(self, event: AnyEvent) -> None:
        """Add one event to the record and let it have its effect on the state as it will be.

        The end of a reassignment whose target was replaced comes with what becomes of the new one.
        """
        if not isinstance(event, Ending):
            self._write(event)
            return
        following = succession(self.ahead.cluster(event.cluster).reassignments[event.key], event, event.cluster)
        for one in (*following.before, event, *following.after):
            self._write(one)

    def _write(self, event: AnyEvent) -> None:
        state = self.ahead.cluster(event.cluster)
        if isinstance(event, Ending):
            self._plans[event.cluster, state.reassignments[event.key].plan] = None
            self.track(event.cluster).forget(event.key)
            self.ended.add((event.cluster, event.key))
        elif isinstance(event, PlanOpened | PlanExtended):
            self._plans[event.cluster, event.plan] = None
        elif isinstance(event, CallIntended):
            self.intended[event.cluster, event.key] = None
        elif isinstance(event, ReplacementWithdrawn):
            replacement = state.reassignments[event.key].replacement
            assert replacement is not None, f"{event.key} has no other target waiting"
            self._plans[event.cluster, replacement.plan] = None
        elif isinstance(event, QueueEntryRemoved):
            self._plans[event.cluster, state.queue[event.key].plan] = None
            self.track(event.cluster).needed.pop(event.key, None)
        apply(state, event, self.at_ms)
        self.events.append(event)

    def write_all(self, events: Iterable[AnyEvent]) -> None:
        """Add events in their order."""
        for event in events:
            self.write(event)

    def finish_plans(self) -> None:
        """Close every open plan whose reassignments have all ended and for which nothing more is announced."""
        for cluster, track in self.tracks.items():
            for name in sorted(track.waiting_plans):
                self._plans[cluster, name] = None
        for cluster, name in tuple(self._plans):
            self._finish_plan(self.ahead.cluster(cluster), name)

    def _finish_plan(self, state: ClusterState, name: str) -> None:
        plan = state.plans[name]
        waiting = self.track(state.name).waiting_plans
        waits = plan.status is PlanStatus.OPEN and plan.more and self.at_ms - plan.extended_ms < MORE_WAIT_MS
        (waiting.add if waits else waiting.discard)(name)
        if plan.status is not PlanStatus.OPEN or not plan.is_idle or waits:
            return
        self.write(
            PlanFinished(
                cluster=state.name,
                plan=name,
                completed=plan.completed,
                rolled_back=plan.rolled_back,
                failed=plan.failed,
                stopped=plan.stopped,
                withdrawn=plan.withdrawn,
            )
        )
