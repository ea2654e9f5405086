"""A log written as its owner would: valid records with a right chain, and whatever else a test appends."""

from dataclasses import dataclass, field
from typing import Any, Self

from drover.events.codec import encode_record
from drover.events.records import SCHEMA_VERSION, Acquire, AnyEvent, Batch, Cursor, Genesis, Outcome, Record
from drover.fold.log import ShardFold

CLUSTER = "prod"


class OneShard:
    """A reader of a log with one shard, to be derived from: it opens, closes and counts its partitions."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def partitions(self, _: str) -> int:
        return 1


@dataclass
class Writer:
    """The owner of one shard; `records` is the shard from offset `start` on."""

    shard: int = 0
    shards: int = 1
    records: list[bytes] = field(default_factory=list)
    fold: ShardFold = field(init=False)

    def __post_init__(self) -> None:
        self.fold = ShardFold(self.shard, self.shards)

    def append(self, record: Record) -> bytes:
        """Append a record and fold it as every reader will."""
        payload = encode_record(record)
        self.fold.fold(len(self.records), payload)
        self.records.append(payload)
        return payload

    def begin(self, owner: str = "w1") -> None:
        """Append genesis and the first acquire."""
        self.append(Genesis(schema=SCHEMA_VERSION, shards=self.shards, shard=self.shard))
        self.acquire(owner)

    def acquire(self, owner: str, group: str = "g") -> None:
        """Let another worker take the shard."""
        self.append(
            Acquire(
                schema=SCHEMA_VERSION,
                epoch=self.fold.epoch + 1,
                token=owner.encode(),
                owner=owner,
                group=group,
                generation=self.fold.epoch + 1,
            )
        )

    def batch(self, *events: AnyEvent, outcomes: tuple[Outcome, ...] = (), hashed: bool = False) -> Batch:
        """Make the next valid batch."""
        return Batch(
            schema=SCHEMA_VERSION,
            token=self.fold.token,
            epoch=self.fold.epoch,
            sequence=self.fold.sequence + 1,
            at_ms=self.fold.at_ms + 1000,
            cursors=(Cursor("id", len(self.records)),) * 4,
            previous_hash=self.fold.chain,
            outcomes=outcomes,
            events=events,
            state_hash=self.fold.state.hash() if hashed else None,
        )

    def say(self, *events: AnyEvent, outcomes: tuple[Outcome, ...] = (), hashed: bool = False) -> bytes:
        """Append the next valid batch."""
        return self.append(self.batch(*events, outcomes=outcomes, hashed=hashed))


def outcome(id_: str, offset: int = 0, **more: Any) -> Outcome:
    """Return the outcome of a freeze command."""
    fields: dict[str, Any] = {
        "id": id_, "cluster": CLUSTER, "type": "freeze", "by": "me", "reason": "why", "topic": "drover.cancel",
        "offset": offset, "verdict": "accepted", "digest": b"d",
    }  # fmt: skip
    return Outcome(**{**fields, **more})
