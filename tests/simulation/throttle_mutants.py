"""Deliberate faults of throttles: what was there is put back, and what others do to them is noticed."""

from tests.simulation.mutant import Mutant

THROTTLES = "drover/throttling/ledger.py"
LEDGER = "drover/throttling/evolve.py"
STATE = "drover/throttling/state.py"
OTHERS = "tests/throttling/test_changed_by_others.py"

THROTTLE_MUTANTS = (
    Mutant(
        "keep-the-rate-that-a-plan-had",
        "drover/throttling/demand.py",
        "        self._rates.clear()\n",
        "",
    ),
    Mutant(
        "count-on-the-old-topics-entries",
        THROTTLES,
        " and known.topic_id != demand.topics[topic].topic_id:",
        " and not known.topic_id:",
        layer="tests/throttling/test_ledger.py",
    ),
    Mutant(
        "keep-the-entries-of-what-is-cancelled",
        "drover/throttling/demand.py",
        "        if reassignment is None or reassignment.cancel_mode is not None:\n",
        "        if reassignment is None:\n",
        layer="tests/shard/test_restoring_steps.py",
    ),
    Mutant(
        "keep-the-entries-of-what-has-ended",
        "drover/throttling/demand.py",
        "        if topic is not None and key in topic.ahead.entries:\n            self._let_go(key, topic)\n",
        "",
    ),
    Mutant(
        "fill-a-topics-lists-ahead",
        "drover/throttling/demand.py",
        "        most = min(MAX_ENTRIES_AHEAD, (MAX_ENTRIES_PER_TOPIC - topic.needed) // 2)\n",
        "        most = 10 * MAX_ENTRIES_AHEAD\n",
        layer="tests/shard/test_throttles_ahead.py",
    ),
    Mutant(
        "write-throttles-without-a-record",
        "drover/shard/proposals.py",
        "        self._proved_ms = self._proposed_ms",
        "        self._proved_ms = 1 << 60",
        layer="tests/shard/test_takeover.py",
    ),
    Mutant(
        "drop-throttle-restore",
        THROTTLES,
        "rates=rates, found=seen, release=True)",
        "rates=seen, found=seen, release=True)",
    ),
    Mutant(
        "forget-the-baseline",
        LEDGER,
        "baseline = event.found if known is None else known.baseline",
        "baseline = event.found",
    ),
    Mutant(
        "leave-entries-behind",
        THROTTLES,
        "        return NO_ENTRIES, known.present\n",
        "        return NO_ENTRIES, Entries(leader=known.present.leader)\n",
    ),
    Mutant(
        "compare-only-what-is-needed-anew",
        "drover/throttling/demand.py",
        "        self.follower.difference_update(follower)\n        self.change(leader, follower)\n",
        "        self.follower.difference_update(follower)\n",
    ),
    Mutant(
        "start-before-the-throttle",
        THROTTLES,
        "        if entry is None or entry.pending or entry.intended != entry.wanted(rate):",
        "        if entry is None:",
    ),
    Mutant(
        "leave-half-a-throttle",
        THROTTLES,
        "        if rates == seen and after.others is not None:",
        "        if after.others is not None:",
    ),
    Mutant(
        "never-look-again",
        "drover/throttling/watch.py",
        "WATCH_MS = 10_000",
        "WATCH_MS = 10_000_000",
        layer="tests/shard/test_throttles_of_others.py",
    ),
    Mutant("leave-deleted-rates-deleted", THROTTLES, "    if rates != seen:", "    if rates != seen and seen.leader:"),
    Mutant(
        "take-the-rates-of-others",
        STATE,
        "            leader=ours.leader if theirs.leader is None else theirs.leader,",
        "            leader=ours.leader,",
    ),
    Mutant(
        "put-back-what-others-have-deleted",
        STATE,
        "_Side(None if was_theirs else self.baseline, None, None",
        "_Side(self.baseline, None, None",
        layer=OTHERS,
    ),
    Mutant(
        "leave-deleted-entries-deleted",
        THROTTLES,
        "_without(known.present.follower, found.follower) if entry in wanted.follower)",
        "())",
        layer=OTHERS,
    ),
    Mutant("leave-a-topic-alone-for-ever", THROTTLES, " and not _has_star(found)", " and False", layer=OTHERS),
    Mutant(
        "believe-what-was-read-during-a-write",
        "drover/throttling/readings.py",
        "            self._outdated_brokers.add(broker)",
        "            pass",
        layer="tests/throttling/test_readings.py",
    ),
    Mutant(
        "forget-the-clusters-throttle",
        "drover/plans/state.py",
        "        if own is not None or self.cluster_throttle is None:",
        "        if self.cluster_throttle is None or self.plans:",
        layer="tests/shard/test_cluster_throttle.py",
    ),
    Mutant(
        "rise-beyond-the-bound",
        "drover/throttling/raising.py",
        "    return min(bound, int(needed))",
        "    return max(bound, int(needed))",
        layer="tests/throttling/test_raising.py",
    ),
    Mutant(
        "rise-before-it-was-measured-again",
        "drover/throttling/raising.py",
        "        if raised_ms is not None and now_ms - raised_ms < MEASURED_AFRESH_MS:",
        "        if raised_ms is not None and now_ms < raised_ms:",
        layer="tests/shard/test_throttle_too_low.py",
    ),
    Mutant(
        "take-a-new-topic-for-a-deleted-one",
        "drover/throttling/ledger.py",
        "        if wanted is not None and read.topics.get(topic) is None:",
        "        if wanted is not None and topic not in read.topics:",
        layer="tests/shard/test_throttle_of_a_new_topic.py",
    ),
    Mutant(
        "give-up-the-lists-of-a-new-topic",
        "drover/throttling/reconciler.py",
        "            elif result.code == UNKNOWN_TOPIC_OR_PARTITION and topic in self._demand.topics:",
        "            elif result.code == UNKNOWN_TOPIC_OR_PARTITION and topic in self._refused:",
        layer="tests/shard/test_throttle_of_a_new_topic.py",
    ),
    Mutant(
        "take-drovers-own-for-a-stray",
        "drover/throttling/decide.py",
        "        if one.broker not in state.broker_throttles and one.broker in facts.live_brokers",
        "        if one.broker in facts.live_brokers",
        layer="tests/shard/test_throttles_left_over.py",
    ),
    Mutant(
        "believe-what-was-written-a-moment-ago",
        "drover/throttling/watch.py",
        "        fresh = self._written_ms.keys() - self._put_off",
        "        fresh = self._put_off - self._put_off",
        layer="tests/throttling/test_watch.py",
    ),
)
