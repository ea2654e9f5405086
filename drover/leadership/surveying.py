"""Going through a survey of every partition a piece at a time: who leads how many, and what is worth a closer look."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from itertools import islice

from drover.facts import PartitionFacts, Survey
from drover.leadership.state import LeadershipState
from events.leadership import LeaderCount
from events.partitions import TopicPartition

# So many take about a millisecond and a half.
AT_ONCE = 500

Check = Callable[[TopicPartition, PartitionFacts], None]


class SurveyReader:
    """Reads one survey in pieces, so that no batch takes longer because a cluster is large.

    `shortest` is the length of the shortest list of each topic so far.
    """

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.shortest: dict[str, int] = {}
        self._left: Iterator[tuple[TopicPartition, PartitionFacts]] = iter(survey.partitions.items())
        self._leaders: Counter[int] = Counter()
        self._preferred: Counter[int] = Counter()

    def read_on(self, check: Check) -> bool:
        """Check the next piece; return whether that was the last."""
        piece = list(islice(self._left, AT_ONCE))
        leaders, preferred, shortest = self._leaders, self._preferred, self.shortest
        for key, facts in piece:
            length = len(facts.replicas)
            if length < shortest.get(key.topic, length + 1):
                shortest[key.topic] = length
            if facts.leader is not None:
                leaders[facts.leader] += 1
            preferred[facts.replicas[0]] += 1
            check(key, facts)
        return len(piece) < AT_ONCE

    def counts(self, others: Collection[int]) -> tuple[LeaderCount, ...]:
        """Count what each broker leads, those among `others` included that lead nothing."""
        brokers = sorted({*self._leaders, *self._preferred, *self.survey.live_brokers, *others})
        return tuple(LeaderCount(broker, self._leaders[broker], self._preferred[broker]) for broker in brokers)


def is_counted(state: LeadershipState, counts: Collection[LeaderCount]) -> bool:
    """Whether these counts are recorded already, and since the list was last changed: who waits for them asks that."""
    known = {broker: (tally.leaders, tally.preferred) for broker, tally in state.leader_counts.items()}
    counted_ms = max((tally.at_ms for tally in state.leader_counts.values()), default=0)
    changed_ms = max((listing.since_ms for listing in state.listings.values()), default=0)
    return counted_ms >= changed_ms and known == {one.broker: (one.leaders, one.preferred) for one in counts}
