"""The intervals of R2 judge every batch as the real fold does."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from drover.shard.fold import RecordVerdict, ShardFold
from events.codec import chain_hash, encode_record
from events.records import Acquire, Batch, Genesis
from spark.validity import AcquireRecord, Interval, Ownership, Validity, validity

TOKENS = tuple(bytes([number]) * 16 for number in range(1, 5))


def counts(rules: Validity, shard: int, offset: int, token: bytes) -> bool:
    return any(
        interval.shard == shard
        and interval.token == token
        and interval.first_offset < offset
        and (interval.next_offset is None or offset < interval.next_offset)
        for interval in rules.intervals
    )


def test_a_batch_counts_between_its_acquire_and_the_next_valid_one() -> None:
    first, late, second = (
        AcquireRecord(0, 1, 1, TOKENS[0]),
        AcquireRecord(0, 4, 1, TOKENS[1]),
        AcquireRecord(0, 7, 2, TOKENS[2]),
    )
    rules = validity({}, [second, first, late])
    assert rules.intervals == (Interval(0, TOKENS[0], 1, 7), Interval(0, TOKENS[2], 7, None))
    assert rules.stale == (late,)
    assert rules.ownerships == {0: Ownership(2, TOKENS[2])}
    assert counts(rules, 0, 6, TOKENS[0])
    assert not counts(rules, 0, 8, TOKENS[0]), "an old owner's batch after the takeover"
    assert not counts(rules, 0, 5, TOKENS[1]), "a batch of one whose acquire lost"
    assert not counts(rules, 1, 6, TOKENS[0]), "another shard"


def test_an_ownership_from_before_holds_from_the_first_offset_on() -> None:
    rules = validity({2: Ownership(5, TOKENS[0])}, [])
    assert counts(rules, 2, 0, TOKENS[0])
    assert rules.ownerships == {2: Ownership(5, TOKENS[0])}


def test_nothing_counts_where_nobody_ever_owned() -> None:
    assert validity({}, []).intervals == ()


# One record of a log: an acquire with some epoch, or a batch, under one of the tokens.
RECORD = st.tuples(st.sampled_from(("acquire", "batch")), st.integers(0, 3), st.integers(1, 6))


@given(st.lists(RECORD, max_size=40), st.data())
def test_the_intervals_judge_as_the_real_fold_wherever_the_log_is_cut(
    log: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    fold = ShardFold(0, 1)
    fold.fold(0, encode_record(Genesis(schema=1, shards=1, shard=0)))
    wanted: dict[int, bool] = {}
    acquires: list[AcquireRecord] = []
    batches: dict[int, bytes] = {}
    for offset, (kind, token, epoch) in enumerate(log, start=1):
        if kind == "acquire":
            acquires.append(AcquireRecord(0, offset, epoch, TOKENS[token]))
            record: Acquire | Batch = Acquire(
                schema=1, epoch=epoch, token=TOKENS[token], owner="w", group="g", generation=1
            )
        else:
            record = Batch(
                schema=1,
                token=TOKENS[token],
                epoch=fold.epoch,
                sequence=fold.sequence + 1,
                at_ms=1,
                cursors=(),
                previous_hash=fold.chain,
            )
            batches[offset] = TOKENS[token]
        folded = fold.fold(offset, encode_record(record))
        assert folded is not None
        wanted[offset] = folded.verdict in {RecordVerdict.VALID, RecordVerdict.ACQUIRED}
        if folded.verdict is RecordVerdict.VALID:
            assert fold.chain == chain_hash(encode_record(record))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(log)), max_size=4)))
    owners: dict[int, Ownership] = {}
    for first, after in itertools.pairwise([0, *cuts, len(log) + 1]):
        rules = validity(owners, [one for one in acquires if first <= one.offset < after])
        owners = dict(rules.ownerships)
        for offset in range(max(1, first), after):
            if offset in batches:
                assert counts(rules, 0, offset, batches[offset]) is wanted[offset]
            elif offset in wanted:
                assert (offset not in {one.offset for one in rules.stale}) is wanted[offset]
