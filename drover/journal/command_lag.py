"""Count the waiting commands of a topic, without offsets that hold no command.

Transaction markers and records of aborted transactions take offsets, but a cursor passes them only with the next
command. Only such offsets before the first waiting command are left out; from there on offsets are counted, because
reading a whole backlog would be slow.
"""

from contextlib import aclosing
from dataclasses import dataclass

from drover.journal.port import Reading

# A topic and a partition.
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _First:
    """An offset up to which there is no command from the cursor on; `is_command` says that it holds one."""

    offset: int
    is_command: bool


class Waiting:
    """Counts from a cursor to its topic's end, and remembers the offset of the first command.

    Offsets that were not read yet count as commands, and `may_be_less` is set until `find_out` reads up to the first
    command. That offset is remembered, so that it is read only once.
    """

    def __init__(self) -> None:
        self._first: dict[Place, _First] = {}
        self._unread: dict[Place, tuple[int, int]] = {}

    @property
    def may_be_less(self) -> bool:
        """Whether the count may be too high."""
        return bool(self._unread)

    def count(self, place: Place, cursor: int, end: int) -> int:
        """Return the number of commands between a cursor and the end of its topic, or an upper bound."""
        first = self._first.get(place)
        if first is not None and first.offset > end:
            # The topic was created anew.
            del self._first[place]
            first = None
        is_exact = first is not None and first.is_command and first.offset >= cursor
        begin = cursor if first is None else max(cursor, first.offset)
        if begin < end and not is_exact:
            self._unread[place] = (begin, end)
        else:
            self._unread.pop(place, None)
        return max(0, end - begin)

    async def find_out(self, reader: Reading) -> dict[Place, int]:
        """Find the first command of every place with an uncertain count, and return the new counts.

        The reader must read committed records only; records of open transactions still count as waiting. `count` may be
        called meanwhile.
        """
        counts = {}
        for place in tuple(self._unread):
            unread = self._unread.pop(place, None)
            if unread is None:
                # `count` was called while another place was read, and is certain by now.
                continue
            begin, end = unread
            first = self._first[place] = await _first_command(reader, place, begin)
            counts[place] = max(0, end - first.offset)
        return counts


async def _first_command(reader: Reading, place: Place, begin: int) -> _First:
    topic, shard = place
    ends = await reader.end_offsets(topic, [shard])
    async with aclosing(reader.read(topic, {shard: begin})) as reading:
        async for records in reading:
            if records:
                return _First(records[0].offset, is_command=True)
    return _First(max(begin, ends[shard]), is_command=False)
