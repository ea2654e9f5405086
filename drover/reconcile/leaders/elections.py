"""Elections under way: their calls, and the outcomes of these."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from drover.decide.verdict import event_name
from drover.events.leadership import ElectionOutcome, LeaderElectionEnded
from drover.events.partitions import TopicPartition
from drover.facts import ELECTION_NOT_NEEDED, NONE, UNKNOWN_TOPIC_OR_PARTITION, CallResult
from drover.reconcile.contract import LEFT_OUT, MAX_PARTITIONS_PER_CALL, OWNER_CHANGED, TAKEOVER_WAIT_MS
from drover.reconcile.leaders.call_groups import CallGroups
from drover.reconcile.messages import ElectLeaders, LeadersElected, Timestamp
from drover.reconcile.observations import ObservationCache
from drover.state.cluster import ClusterState


@dataclass(frozen=True, slots=True)
class ElectionEnd:
    """The end of one partition's election; `code` and `detail` are Kafka's own where it refused."""

    key: TopicPartition
    outcome: ElectionOutcome
    code: int = 0
    detail: str = ""

    def event(self, cluster: str) -> LeaderElectionEnded:
        """Return the event that records this end alone."""
        name = event_name(cluster, self.key)
        return LeaderElectionEnded(**name, outcome=self.outcome, code=self.code, detail=self.detail)


class Elections:
    """The calls of one cluster, from the durable intent to the recorded outcome.

    While an election is under way no other call for its partition begins: observations of the partition do not count
    until the outcome is in the log.
    """

    def __init__(self, state: ClusterState, observed: ObservationCache) -> None:
        self._state = state
        self._observed = observed
        self._gathering = CallGroups()
        self._ended: deque[tuple[int, ElectionEnd]] = deque()
        # Calls of a predecessor, and when (monotonic) they have certainly ended.
        self._inherited: dict[TopicPartition, int] = {}

    def begin(self, now: Timestamp) -> None:
        """Wait until the calls that a predecessor has left open have ended, and that is in the log."""
        until_ms = now.monotonic_ms + TAKEOVER_WAIT_MS
        self._inherited = dict.fromkeys(self._state.elections, until_ms)
        for key in self._inherited:
            self._observed.predecessor_calls(key, until_ms)
            self._observed.call_starts(key, changes_list=False)

    def propose(self, key: TopicPartition) -> None:
        """Note an intent; from now on no observation of its partition counts, so that no other call begins."""
        self._gathering.put((key,))
        self._observed.call_starts(key, changes_list=False)

    def keep_waiting(self, key: TopicPartition) -> None:
        """Go on ignoring observations of a partition whose reassignment has ended while an election is open."""
        if key in self._state.elections:
            self._observed.call_starts(key, changes_list=False)

    def calls(self, now_ms: int, start_by_ms: int) -> Iterator[ElectLeaders]:
        """Make the calls that are due."""
        taken, start_by_ms = self._gathering.take(now_ms, start_by_ms)
        keys = [key for key in taken if key in self._state.elections]
        # The others have ended meanwhile: no call follows for them, and so no end of one.
        self._gathering.ended(set(taken).difference(keys))
        for first in range(0, len(keys), MAX_PARTITIONS_PER_CALL):
            part = tuple(keys[first : first + MAX_PARTITIONS_PER_CALL])
            yield ElectLeaders(self._state.name, part, start_by_ms)

    def withhold(self, why: str) -> None:
        """Let the intended calls lapse."""
        for key in self._gathering.withdraw():
            if key in self._state.elections:
                self._ended.append((0, ElectionEnd(key, ElectionOutcome.NOT_SENT, detail=why)))

    def ended(self, ended: LeadersElected) -> None:
        """Take in the end of a call; it is recorded by `take_ends`."""
        self._gathering.ended(ended.partitions)
        for key in ended.partitions:
            if key not in self._state.elections or key in self._inherited:
                continue
            self._ended.append((ended.ended_ms, self._meaning(key, ended)))

    def take_ends(self, now_ms: int, at_most: int) -> Iterator[ElectionEnd]:
        """Take the ends to record now; from then on observations count again."""
        over = [key for key, until_ms in self._inherited.items() if until_ms <= now_ms]
        for key in over:
            del self._inherited[key]
            if key in self._state.elections:
                self._ended.append((now_ms, ElectionEnd(key, ElectionOutcome.UNKNOWN, detail=OWNER_CHANGED)))
        for _ in range(min(at_most, len(self._ended))):
            ended_ms, end = self._ended.popleft()
            election = self._state.elections.get(end.key)
            if election is None:
                continue
            self._observed.call_ends(end.key, ended_ms)
            if end.outcome is ElectionOutcome.ELECTED and election.leader is not None:
                self._observed.leader_replaced(end.key, election.leader, ended_ms)
            yield end

    def due_ms(self, now_ms: int) -> int | None:
        """Tell when a call is to begin or an end is to be recorded."""
        if self._ended:
            return now_ms
        times = (self._gathering.due_ms(now_ms), *self._inherited.values())
        return min((due for due in times if due is not None), default=None)

    def _meaning(self, key: TopicPartition, ended: LeadersElected) -> ElectionEnd:
        result = None if ended.results is None else ended.results.get(key)
        if result is not None:
            return self._answered(key, result)
        if ended.results is None and not ended.lost:
            return ElectionEnd(key, ElectionOutcome.NOT_SENT, detail=ended.detail)
        return ElectionEnd(key, ElectionOutcome.UNKNOWN, detail=ended.detail or LEFT_OUT)

    def _answered(self, key: TopicPartition, result: CallResult) -> ElectionEnd:
        if result.code == NONE:
            return ElectionEnd(key, ElectionOutcome.ELECTED)
        if result.code == ELECTION_NOT_NEEDED:
            return ElectionEnd(key, ElectionOutcome.NOT_NEEDED)
        words = result.message or ("there is no such partition" if result.code == UNKNOWN_TOPIC_OR_PARTITION else "")
        return ElectionEnd(key, ElectionOutcome.REFUSED, code=result.code, detail=words)
