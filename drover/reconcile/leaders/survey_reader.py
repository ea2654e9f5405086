"""Going through a survey of every partition a piece at a time: who leads how many, and what is worth a closer look."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice

from drover.brokers import hidden_leaders
from drover.events.leadership import LeaderCount
from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts, Survey
from drover.state.leaders import LeadershipState

# So many take about a millisecond and a half.
AT_ONCE = 500

# How often every partition is looked at while something is listed, reordered or waits; and while leaders are balanced.
SURVEY_EVERY_MS, SURVEY_BALANCING_MS = 5000, 1000

Check = Callable[[TopicPartition, PartitionFacts], None]


class SurveyReader:
    """Reads one survey in pieces, so that no batch takes longer because a cluster is large.

    `shortest` is the length of the shortest list of each topic, as far as this survey was read; of topics that it has
    not come to yet, as the one before it (`known`) says. Topics that are gone are dropped at the end. `out_of_sync`
    holds, for each of `watched`, the partitions of which that broker has a replica out of sync.
    """

    def __init__(self, survey: Survey, known: Mapping[str, int], watched: Collection[int] = ()) -> None:
        self.survey = survey
        self.shortest = dict(known)
        self.out_of_sync: dict[int, list[TopicPartition]] = {broker: [] for broker in watched}
        self._met: set[str] = set()
        self._left: Iterator[tuple[TopicPartition, PartitionFacts]] = iter(survey.partitions.items())
        self._leaders: Counter[int] = Counter()
        self._preferred: Counter[int] = Counter()

    def read_on(self, check: Check) -> bool:
        """Check the next piece; return whether that was the last."""
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
        """Count what each broker leads, those among `others` included that lead nothing."""
        brokers = sorted({*self._leaders, *self._preferred, *self.survey.live_brokers, *others})
        return tuple(LeaderCount(broker, self._leaders[broker], self._preferred[broker]) for broker in brokers)


def next_survey_ms(state: LeadershipState, ended_ms: int) -> int:
    """Say when the survey after one that ended at this time is due; monotonic, and never 0, which means at once."""
    return max(1, ended_ms + (SURVEY_EVERY_MS if state.balance is None else SURVEY_BALANCING_MS))


def is_counted(state: LeadershipState, counts: Collection[LeaderCount], at_ms: int) -> bool:
    """Whether these counts are recorded already, and since the list was last changed: who waits for them asks that.

    What is still to come was recorded by a clock far ahead that is right again: a count of that time may be old, and
    of a listing nobody knows since when it is there.
    """
    known = {broker: (tally.leaders, tally.preferred) for broker, tally in state.leader_counts.items()}
    counted_ms = max((tally.at_ms for tally in state.leader_counts.values()), default=0)
    listed_ms = (listing.since_ms for listing in state.listings.values())
    changed_ms = max((since_ms for since_ms in listed_ms if since_ms <= at_ms), default=0)
    return at_ms >= counted_ms >= changed_ms and known == {one.broker: (one.leaders, one.preferred) for one in counts}
