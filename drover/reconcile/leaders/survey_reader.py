"""Reads a survey of every partition in pieces: counts leaders, and checks each partition."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice

from drover.brokers import hidden_leaders
from drover.events.leadership import LeaderCount
from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts, Survey
from drover.state.leaders import LeadershipState

# So many partitions take about a millisecond and a half.
AT_ONCE = 500

# The time between surveys while a broker is listed, an order kept or a partition waits; and while leaders are balanced.
SURVEY_EVERY_MS, SURVEY_BALANCING_MS = 5000, 1000

Check = Callable[[TopicPartition, PartitionFacts], None]


class SurveyReader:
    """Reads one survey in pieces, so that no batch takes longer because a cluster is large.

    `shortest` is the length of the shortest list of each topic, as far as this survey was read; of topics that it has
    not come to yet, by the survey before it (`previous`). Topics that are gone are dropped at the end. `out_of_sync`
    holds, for each of `watched`, the partitions of which that broker has a replica out of sync.
    """

    def __init__(self, survey: Survey, previous: Mapping[str, int], watched: Collection[int] = ()) -> None:
        self.survey = survey
        self.shortest = dict(previous)
        self.out_of_sync: dict[int, list[TopicPartition]] = {broker: [] for broker in watched}
        self._met: set[str] = set()
        self._left: Iterator[tuple[TopicPartition, PartitionFacts]] = iter(survey.partitions.items())
        self._leaders: Counter[int] = Counter()
        self._preferred: Counter[int] = Counter()

    def read_on(self, check: Check) -> bool:
        """Check the next piece; return whether it was the last."""
        piece = list(islice(self._left, AT_ONCE))
        leaders, preferred, shortest = self._leaders, self._preferred, self.shortest
        for key, facts in piece:
            topic, length = key.topic, len(facts.replicas)
            if topic not in self._met:
                self._met.add(topic)
                shortest[topic] = length
            elif length < shortest[topic]:
                shortest[topic] = length
            leader = facts.leader
            if facts.leader_lacks_listener:
                hidden = hidden_leaders(facts, self.survey.live_brokers)
                leader = hidden[0] if len(hidden) == 1 else None
            if leader is not None:
                leaders[leader] += 1
            preferred[facts.replicas[0]] += 1
            for broker, lagging in self.out_of_sync.items():
                if broker in facts.replicas and broker not in facts.isr:
                    lagging.append(key)
            check(key, facts)
        is_last = len(piece) < AT_ONCE
        if is_last:
            for topic in shortest.keys() - self._met:
                del shortest[topic]
        return is_last

    def counts(self, others: Collection[int]) -> tuple[LeaderCount, ...]:
        """Count the partitions that each broker leads, and the lists that it heads; `others` even if they have none."""
        brokers = sorted({*self._leaders, *self._preferred, *self.survey.live_brokers, *others})
        return tuple(LeaderCount(broker, self._leaders[broker], self._preferred[broker]) for broker in brokers)


def next_survey_ms(state: LeadershipState, ended_ms: int) -> int:
    """Say when the survey after one that ended at this time is due; monotonic, and never 0, which means at once."""
    return max(1, ended_ms + (SURVEY_EVERY_MS if state.balance is None else SURVEY_BALANCING_MS))


def is_counted(state: LeadershipState, counts: Collection[LeaderCount], at_ms: int) -> bool:
    """Whether these counts are recorded already, after the last change of the list, which waiting clients ask for.

    A time in the future was recorded by a clock that ran ahead: such a count may be old and is recorded again, and the
    time of such a listing is unknown and ignored.
    """
    recorded = {broker: (tally.leaders, tally.preferred) for broker, tally in state.leader_counts.items()}
    counted_ms = max((tally.at_ms for tally in state.leader_counts.values()), default=0)
    listed_ms = (listing.since_ms for listing in state.listings.values())
    changed_ms = max((since_ms for since_ms in listed_ms if since_ms <= at_ms), default=0)
    return at_ms >= counted_ms >= changed_ms and recorded == {
        count.broker: (count.leaders, count.preferred) for count in counts
    }
