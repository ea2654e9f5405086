"""Audits of a log whose time goes back (R6): a moment is after the last batch that is not later."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise, product

import pytest
from msgspec.structs import replace

from drover.events.codec import decode_record, encode_record
from drover.events.records import Batch
from drover.fold.log import ShardFold
from drover.spark.audit import shards
from drover.spark.audit.kept import Kept, KeptShard, Place, decoded, places_before
from drover.spark.audit.parts import Wish, parse_offsets
from drover.spark.audit.report import Report, report
from drover.spark.audit.shard_report import ShardReport, Wanted
from drover.spark.audit.shards import audited
from tests.shard.random_logs import random_log
from tests.spark.audit_oracle import valid
from tests.spark.kafka_rows import Stored, shard
from tests.spark.pure import in_order

YEAR_MS = 365 * 86_400_000
RECORDS = 120
EVERYTHING = Wish()
NOTHING: Mapping[int, KeptShard] = {}


def with_wrong_clock(records: Sequence[bytes], ahead_ms: int, offsets: range) -> list[Stored]:
    """Write a log again as an owner would whose clock was ahead at these offsets."""
    fold, written = ShardFold(0, 1), []
    for offset, payload in enumerate(records):
        record = decode_record(payload)
        if isinstance(record, Batch) and record.token == fold.token:
            at_ms = record.at_ms + (ahead_ms if offset in offsets else 0)
            # The state hash covers times.
            record = replace(
                record, at_ms=at_ms, corrects_time=at_ms < fold.at_ms, previous_hash=fold.chain, state_hash=None
            )
        written.append(encode_record(record))
        fold.fold(offset, written[-1])
    return shard(*written)


def read(log: Sequence[Stored], wish: Wish, kept: Mapping[int, KeptShard] = NOTHING) -> tuple[Report, list[KeptShard]]:
    """Audit a log from where it was kept, and return what is kept of it then."""
    first = kept[0].chain_offset if kept else 0
    lines = list(audited(in_order(log[first:]), wish, Wanted(), kept))
    found = report([line for line in lines if isinstance(line, ShardReport)], wish, {0: 0}, {0: len(log)})
    again = [decoded(line.content) for line in lines if isinstance(line, Kept)]
    return found, [one for one in again if one is not None]


def wanted_offsets(log: Sequence[Stored], wish: Wish) -> tuple[int, int]:
    """Return the first and the last offset of a part, each found from the end of the log."""
    batches = list(valid(log))
    last_before = [number for number, one in enumerate(batches) if one.at_ms < (wish.since_ms or 0)]
    last_in = [number for number, one in enumerate(batches) if wish.until_ms is None or one.at_ms <= wish.until_ms]
    first = batches[last_before[-1] + 1].offset if last_before else 0
    is_whole = not last_in or last_in[-1] == len(batches) - 1
    return first, len(log) - 1 if is_whole else batches[last_in[-1] + 1].offset - 1


def wishes(log: Sequence[Stored]) -> Iterator[Wish]:
    times = sorted(one.at_ms for one in valid(log))
    some = [times[number * len(times) // 6] for number in range(1, 6)]
    for since_ms, until_ms in product((None, *some), (*some, None)):
        if since_ms is None or until_ms is None or since_ms < until_ms:
            yield Wish(since_ms, until_ms)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ahead_ms", [90_000, YEAR_MS])
def test_a_part_between_two_moments_is_that_of_its_offsets_where_a_clock_was_wrong(seed: int, ahead_ms: int) -> None:
    log = with_wrong_clock(random_log(seed, RECORDS), ahead_ms, range(50, 65))
    assert sum(one.at_ms > later.at_ms for one, later in pairwise(valid(log))) == 1
    for wish in wishes(log):
        found, _ = read(log, wish)
        first, last = wanted_offsets(log, wish)
        assert found.offsets == f"0:{first}-{last}"
        assert found == read(log, Wish(offsets=parse_offsets(found.offsets)))[0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("first", [20, 40, 60])
def test_a_clock_that_was_a_year_ahead_makes_no_move_last_a_year_nor_less_than_nothing(seed: int, first: int) -> None:
    log = with_wrong_clock(random_log(seed, RECORDS), YEAR_MS, range(first, first + 15))
    batches = list(valid(log))

    def decided_ms(offset: int) -> int:
        return min(one.at_ms for one in batches if one.offset >= offset)

    whole, kept = read(log, EVERYTHING)
    moves = [row for row in whole.sections["reassignments"] if row["ended_ms"] is not None]
    assert moves
    for row in moves:
        assert row["duration_ms"] == decided_ms(row["offset"]) - decided_ms(row["began_offset"])
        assert 0 <= row["duration_ms"] < YEAR_MS
    assert 0 <= (whole.totals["completed_longest_ms"] or 0) < YEAR_MS
    assert all((row["duration_ms"] or 0) >= 0 for row in whole.sections["plans"])
    times = sorted(one.at_ms for one in batches)
    wish = Wish(since_ms=times[len(times) // 2])
    wanted, _ = read(log, wish)
    for place in places_before((Place(one.position, one.latest_ms) for one in kept), wish, 0):
        (near,) = (one for one in kept if one.position == place.position)
        assert read(log, wish, {0: deepcopy(near)})[0] == wanted


def test_what_a_wrong_clock_dated_a_year_ahead_is_in_no_later_part() -> None:
    log = with_wrong_clock(random_log(1, RECORDS), YEAR_MS, range(50, 65))
    now_ms = max(one.at_ms for one in valid(log) if one.offset >= 65)
    since_ms = min(one.at_ms for one in valid(log) if one.offset >= 80)
    whole, _ = read(log, EVERYTHING)
    assert read(log, Wish(until_ms=now_ms))[0].sections == whole.sections
    found, _ = read(log, Wish(since_ms))
    assert found.sections["commands"]
    assert all(row["offset"] >= 80 for row in found.sections["commands"])


def test_a_part_is_told_alike_from_where_it_was_kept_though_a_clock_was_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "KEPT_EVERY_EVENTS", 10)
    log = with_wrong_clock(random_log(1, RECORDS), 90_000, range(50, 65))
    _, kept = read(log, EVERYTHING)
    began = set()
    for wish in wishes(log):
        wanted, again = read(log, wish)
        assert [(one.position, one.plans) for one in again] == [(one.position, one.plans) for one in kept]
        for place in places_before((Place(one.position, one.latest_ms) for one in kept), wish, 0):
            (near,) = (one for one in kept if one.position == place.position)
            assert read(log, wish, {0: deepcopy(near)})[0] == wanted
            began.add(near.position)
    assert min(began) < 50
    assert max(began) > 65
