"""The fold of a part of the log: rows in, contributions out, a cluster at a time."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from spark.folding.cluster import ClusterFold
from spark.folding.rows import Contribution, FoldRow
from spark.folding.samples import SampleFold
from spark.folding.tally import Tally
from spark.rows import EVENT

Carry = Mapping[str, bytes]


def fold(rows: Iterable[FoldRow], carry: Carry) -> Iterator[Contribution]:
    """Fold rows that are sorted by cluster, each cluster's events in the order of the log, its samples in theirs.

    `carry` is what was carried from the parts before. No state is kept beyond one cluster.
    """
    for cluster, of_cluster in groupby(rows, attrgetter("cluster")):
        tally = Tally()
        events, samples = ClusterFold(cluster, carry, tally), SampleFold(cluster, carry, tally)
        for row in of_cluster:
            (events if row.entry == EVENT else samples).see(row)
        yield from events.contributions()
        yield from samples.contributions()
        yield from tally.contributions()
