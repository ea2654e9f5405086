"""A balance of leaders: when it begins by itself, which topics it covers, and when it ends."""

from collections.abc import Iterator, Sequence

from drover.decide.leader_order import deprioritise
from drover.decide.verdict import DROVER
from drover.events.leadership import LeaderBalanceBegun, LeaderBalanceEnded
from drover.facts import PartitionFacts
from drover.reconcile.gates import changes_nothing
from drover.reconcile.leaders.judgement import Judgement, LeaderPolicy, Wait
from drover.state.cluster import ClusterState
from drover.state.leaders import Balance

# How long a balance waits (log time) for replicas on live brokers to be in sync, and how long it goes on (monotonic)
# without moving a leader: Kafka may refuse every election, for a missing ACL perhaps.
PATIENCE_MS = 10 * 60_000
# At most so much of the time between two surveys counts for the latter.
BETWEEN_SURVEYS_MS = 10_000


class BalanceProgress:
    """The balance of one cluster, if one is under way."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        # Counts of partitions in the survey that is being read: another broker leads than the first unlisted one; that
        # one lives, so that it may lead yet; and there is an action to take.
        self._left = 0
        self._coming = 0
        self._to_do = 0
        # The time of a balance that begins in the future of log time, and the log time from which its wait counts.
        self._corrected_ms: tuple[int, int] | None = None
        # When the balance began and how many leaders it had moved, and for how long it has moved no further one.
        self._moved: tuple[int, int] = (0, 0)
        self._stuck_ms = 0
        # When (monotonic) the last survey was read to its end.
        self._surveyed_ms = 0

    def covers(self, topic: str) -> bool:
        """Whether the first unlisted replica is to lead the partitions of a topic."""
        balance = self._state.balance
        return balance is not None and (balance.topics is None or topic in balance.topics)

    def after_return(self, brokers: Sequence[int]) -> Iterator[LeaderBalanceBegun]:
        """Begin a balance when brokers are back, where the settings say so.

        It replaces one that is under way, which may cover some topics only, or may be about to stop waiting for the
        replicas of brokers that came back earlier.
        """
        if brokers and self._state.limits.balances_after_return:
            names = ", ".join(map(str, brokers))
            reason = f"broker {names} is back" if len(brokers) == 1 else f"brokers {names} are back"
            yield LeaderBalanceBegun(cluster=self._state.name, by=DROVER, reason=reason)

    def count(self, seen: PartitionFacts, judgement: Judgement | None, policy: LeaderPolicy) -> None:
        """Count a partition that a survey shows."""
        if not policy.balances or seen.leader is None:
            return
        if judgement is not None and not isinstance(judgement, Wait):
            self._to_do += 1
            return
        first = deprioritise(seen.replicas, policy.listed)[0]
        if seen.leader != first:
            self._left += 1
            self._coming += first in policy.live

    def after_survey(self, at_ms: int, now_ms: int, *, is_idle: bool) -> Iterator[LeaderBalanceEnded]:
        """End the balance if a whole survey has shown nothing more to do, or if it no longer makes progress.

        `at_ms` is log time, `now_ms` monotonic.
        """
        left, coming, to_do = self._left, self._coming, self._to_do
        self._left = self._coming = self._to_do = 0
        balance = self._state.balance
        if balance is None:
            return
        if not self._is_stuck(balance, now_ms):
            if to_do or not is_idle or self._state.elections:
                return
            if coming and at_ms - self._begun_ms(balance.since_ms, at_ms) < PATIENCE_MS:
                return
        yield LeaderBalanceEnded(cluster=self._state.name, elected=balance.elected, left=left + to_do)

    def _is_stuck(self, balance: Balance, now_ms: int) -> bool:
        """Whether it has moved no leader for ten minutes in which it was allowed to."""
        moved, passed_ms = (balance.since_ms, balance.elected), now_ms - self._surveyed_ms
        self._surveyed_ms = now_ms
        if moved != self._moved or changes_nothing(self._state):
            self._moved, self._stuck_ms = moved, 0
        else:
            # Bounded, because there are no surveys, and no elections, while the cluster is out of reach.
            self._stuck_ms += min(passed_ms, BETWEEN_SURVEYS_MS)
        return self._stuck_ms >= PATIENCE_MS

    def _begun_ms(self, since_ms: int, at_ms: int) -> int:
        """Tell since when a balance waits; a time in the future counts from its first use."""
        if since_ms <= at_ms:
            return since_ms
        if self._corrected_ms is None or self._corrected_ms[0] != since_ms:
            self._corrected_ms = since_ms, at_ms
        return min(self._corrected_ms[1], at_ms)
