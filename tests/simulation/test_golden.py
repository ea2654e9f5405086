"""Logs that were written once replay for ever, to the very state that they made then."""

from pathlib import Path

import pytest

from drover.fold.log import RecordVerdict, ShardFold
from tests.simulation.golden import FOLDER, read

LOGS = sorted(FOLDER.glob("*.msgpack.zlib"))
MAX_BYTES = 300_000


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name.split(".")[0])
def test_a_log_of_the_soak_replays_to_the_state_that_it_made(path: Path) -> None:
    golden = read(path)
    for number, shard in enumerate(golden.shards):
        fold = ShardFold(number, len(golden.shards))
        for offset, payload in enumerate(shard.records):
            fold.fold(offset, payload)
        assert fold.state.hash() == shard.state_hash


def test_the_logs_hold_what_logs_can_hold() -> None:
    verdicts: set[RecordVerdict] = set()
    events: set[str] = set()
    for path in LOGS:
        golden = read(path)
        for number, shard in enumerate(golden.shards):
            fold = ShardFold(number, len(golden.shards))
            for offset, payload in enumerate(shard.records):
                folded = fold.fold(offset, payload)
                assert folded is not None
                verdicts.add(folded.verdict)
                events.update(str(event.__struct_config__.tag) for event in getattr(folded.record, "events", ()))
    assert verdicts == set(RecordVerdict) - {RecordVerdict.VOID}
    assert len(events) >= 25


def test_the_logs_are_small() -> None:
    assert LOGS
    assert sum(path.stat().st_size for path in LOGS) <= MAX_BYTES
