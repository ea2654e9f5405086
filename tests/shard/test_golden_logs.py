"""Logs that an earlier Drover wrote must replay for ever, with the very state hashes that were recorded then."""

import zlib
from pathlib import Path

import msgspec
import pytest

from drover.errors import UnknownSchemaError
from drover.events.codec import decode_record, encode_record
from drover.events.records import Batch
from drover.fold.inspection import Inspection
from drover.fold.log import RecordVerdict, ShardFold
from tests.shard.world import World

GOLDEN = Path(__file__).parent / "golden"


def read(name: str) -> list[bytes]:
    packed = zlib.decompress((GOLDEN / f"{name}.msgpack.zlib").read_bytes())
    return msgspec.msgpack.decode(packed, type=list[bytes])


def test_a_log_with_state_hashes_of_the_first_form_replays() -> None:
    """15 recorded hashes in the midst of moves, rollbacks and throttles: of a form that is counted, not checked."""
    fold = ShardFold(0, 1)
    verdicts = [
        folded.verdict for offset, payload in enumerate(read("first_form")) if (folded := fold.fold(offset, payload))
    ]
    assert RecordVerdict.FENCED not in verdicts
    assert fold.old_state_hashes == 15
    inspection = Inspection(0, 1)
    assert not [
        finding for offset, payload in enumerate(read("first_form")) for finding in inspection.see(offset, payload)
    ]
    assert (inspection.summary().state_hashes, inspection.summary().unchecked_hashes) == (0, 15)
    assert fold.state.hash().hex() == "768eb8c28fb25c070153f98dfdbe37d3"


async def test_a_state_hash_of_a_form_that_is_not_known_stops_the_reader() -> None:
    world = World()
    await world.freeze()
    proposed = world.core.closing_batch(world.now)
    assert proposed is not None
    record = decode_record(proposed.payload)
    assert isinstance(record, Batch)
    with pytest.raises(UnknownSchemaError, match="form 3"):
        world.append(encode_record(msgspec.structs.replace(record, state_hash_form=3)))
