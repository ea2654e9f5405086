"""Logs that an earlier Drover wrote must replay for ever, with the very state hashes that were recorded then."""

import zlib
from pathlib import Path

import msgspec
import pytest

from drover.errors import UnknownSchemaError
from drover.shard.fold import ShardFold, Verdict
from events.codec import decode_record, encode_record
from events.records import Batch
from tests.shard.world import World

GOLDEN = Path(__file__).parent / "golden"


def read(name: str) -> list[bytes]:
    packed = zlib.decompress((GOLDEN / f"{name}.msgpack.zlib").read_bytes())
    return msgspec.msgpack.decode(packed, type=list[bytes])


def test_a_log_with_state_hashes_of_the_first_form_replays() -> None:
    """15 recorded hashes in the midst of moves, rollbacks and throttles; the fold checks each."""
    fold = ShardFold(0, 1)
    verdicts = [
        folded.verdict for offset, payload in enumerate(read("first_form")) if (folded := fold.fold(offset, payload))
    ]
    assert Verdict.FENCED not in verdicts
    assert fold.state.hash(form=1).hex() == "ff3886cab6c19b921ef7a61b3b12bb16"


async def test_a_state_hash_of_a_form_that_is_not_known_stops_the_reader() -> None:
    world = World()
    await world.freeze()
    draft = world.core.closing_draft(world.now)
    assert draft is not None
    record = decode_record(draft.payload)
    assert isinstance(record, Batch)
    with pytest.raises(UnknownSchemaError, match="form 3"):
        world.append(encode_record(msgspec.structs.replace(record, state_hash_form=3)))
