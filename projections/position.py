"""A tree's position in the log: the node that every transaction updates, and the order of positions."""

import hashlib

import msgspec

from drover.events.undecodable import UNDECODABLE

POSITION_PATH = "/drover/position"


class Place(msgspec.Struct, frozen=True, order=True, gc=False):
    """A place between two events of a shard: behind all before the record at `offset` and `event_index` events of it.

    Behind the last event of a record stands the place before the next record, so that a prefix has one name only.
    """

    offset: int
    event_index: int


START = Place(0, 0)


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the position node.

    The tree is the fold of the shard's events before (`offset`, `event_index`), as decided under `epoch`; `at_ms` is
    the log's time of the last of them. `writer` is the process that wrote it. While `building` is true the tree is
    being rebuilt: it will be the fold of that prefix when that is done. `standing` are the shared nodes
    (`drover.projections.ownership`) that hold a document now, each with the `mark_of` its bytes, made when the document
    was first written there: a shared node with other bytes, or one that is not in `standing`, is a request.
    """

    cluster: str
    shard: int
    epoch: int
    offset: int
    event_index: int
    at_ms: int
    writer: str
    version: int = 1
    building: bool = False
    standing: dict[str, str] = {}

    @property
    def place(self) -> Place:
        """The place in the log."""
        return Place(self.offset, self.event_index)


def mark_of(data: bytes, place: Place, before: str | None = None) -> str:
    """Return the mark of a document that is written at a place: a digest of its bytes, and the place.

    `before` is the mark of the node's present document; it is returned if it was made of the same bytes.
    """
    digest = _digest(data)
    return before if before is not None and _is_of(before, digest) else f"{digest}-{place.offset}.{place.event_index}"


def is_marked(mark: str | None, data: bytes | None) -> bool:
    """Whether a mark was made of these bytes."""
    return mark is not None and data is not None and _is_of(mark, _digest(data))


def _is_of(mark: str, digest: str) -> bool:
    return mark.partition("-")[0] == digest


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


_decoder = msgspec.json.Decoder(Position)
_encoder = msgspec.json.Encoder(order="sorted")


def encode_position(position: Position) -> bytes:
    """Encode a position as canonical JSON."""
    return _encoder.encode(position)


def decode_position(data: bytes) -> Position | None:
    """Decode a position; None if it is invalid, as after an edit by hand."""
    try:
        return _decoder.decode(data)
    except UNDECODABLE:
        return None
