"""Faults in how a shard is shared: what goes first, whose turn it is, and what is found behind what is read."""

from tests.simulation.mutant import Mutant

INBOX = "drover/shard/inbox.py"
QUEUES = "drover/shard/queues.py"
FIRST = "tests/shard/test_first.py"
FAIRNESS = "tests/shard/test_fairness.py"
PREVIEW = "tests/shard/test_preview.py"


def _fault(name: str, path: str, old: str, new: str, layer: str) -> Mutant:
    """Make one that its layer notices: no promise of the simulation says who comes first."""
    return Mutant(name, path, old, new, layer)


SHARING_MUTANTS = (
    _fault(
        "let-one-cluster-fill-a-topic",
        INBOX,
        "return self._by_group[arrival.topic_index, group_of(arrival)], arrival.offset",
        "return 0, arrival.offset",
        FAIRNESS,
    ),
    _fault("take-what-cannot-be-decided", INBOX, "return group_of(arrival) not in self._busy", "return True", FAIRNESS),
    _fault(
        "name-any-number-of-early-ones",
        INBOX,
        "return self._early[topic_index] < MOST_EARLY",
        "return self._early[topic_index] >= 0",
        FAIRNESS,
    ),
    _fault(
        "freeze-in-its-turn",
        INBOX,
        "        if isinstance(command, Freeze | Unfreeze):\n            return True\n",
        "",
        FIRST,
    ),
    _fault("cancel-before-ones-own-alter", INBOX, '    yield (command.cluster, "by", command.by)\n', "", FIRST),
    _fault(
        "let-cancels-fill-a-run",
        INBOX,
        "if first is not None and run.sizes[CANCEL_INDEX] < CLOSE_BYTES // 2:",
        "if first is not None:",
        FIRST,
    ),
    _fault(
        "let-one-requester-fill-the-topic",
        QUEUES,
        "(count + 1, start + weight_of(arrival))",
        "(count + 1, start)",
        FIRST,
    ),
    _fault(
        "overtake-ones-own-command",
        INBOX,
        "is_behind = self._in_order[command.cluster, command.by] or self._in_order[command.cluster,]",
        "is_behind = self._in_order[command.cluster,]",
        FIRST,
    ),
    _fault(
        "overtake-an-unfreeze-of-everyone",
        INBOX,
        "is_behind = self._in_order[command.cluster, command.by] or self._in_order[command.cluster,]",
        "is_behind = self._in_order[command.cluster, command.by]",
        FIRST,
    ),
    _fault(
        "overtake-what-is-not-read",
        INBOX,
        "            self._preview.pass_over(arrival.offset, command)\n",
        "",
        PREVIEW,
    ),
    _fault(
        "pass-what-is-not-read",
        INBOX,
        "return arrival.offset in self._preview or self._oldest(CANCEL_INDEX) is not arrival",
        "return self._oldest(CANCEL_INDEX) is not arrival",
        PREVIEW,
    ),
    _fault(
        "queue-what-was-previewed-again",
        INBOX,
        "        if index == CANCEL_INDEX and self._preview.read(arrival.offset):\n",
        "        if index == CANCEL_INDEX and self._preview.read(arrival.offset) and not self._queues:\n",
        PREVIEW,
    ),
    _fault(
        "decide-a-cancel-again",
        QUEUES,
        "if offset < next_offset or offset in early]",
        "if offset < 0]",
        PREVIEW,
    ),
    _fault(
        "give-cancels-every-place",
        "drover/shard/preview.py",
        "sum(cancels) >= self._share // 2",
        "sum(cancels) >= self._share",
        PREVIEW,
    ),
)
