"""Faults in how the command topics of a shard share it: what goes first, and that no topic fills a run alone."""

from tests.simulation.mutant import Mutant

INBOX = "drover/shard/inbox.py"
LAYER = "tests/shard/test_inbox.py"

SHARING_MUTANTS = (
    Mutant(
        "freeze-in-its-turn",
        INBOX,
        "return arrival.topic_index != CANCEL_INDEX, arrival.timestamp_ms, arrival.topic_index",
        "return False, arrival.timestamp_ms, arrival.topic_index",
        LAYER,
    ),
    Mutant("let-a-topic-fill-a-run", INBOX, "min(sharing or heads, ", "min(heads, ", LAYER),
)
