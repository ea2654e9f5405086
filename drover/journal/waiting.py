"""How many commands of a topic wait: offsets that no reader of commands will ever get are not counted.

A transaction's end takes an offset, and what it aborted takes offsets, too. No command is there, and none has to be
decided; a cursor passes them with the next command. Only those before the first command that waits are left out: what
lies behind it counts by offsets, since whoever counts must not read a whole backlog.
"""

from contextlib import aclosing
from dataclasses import dataclass

from drover.journal.port import Reading

# A topic and one of its partitions.
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _First:
    """No command lies between the cursor and this offset; `is_command` says that one is there."""

    offset: int
    is_command: bool


class Waiting:
    """Counts from a cursor to its topic's end, and remembers where nothing is.

    What was not looked at yet counts as if a command were at each offset: `is_unsure` says so until `find_out`, which
    reads up to the first command. That one stays known, so that what waits is read once.
    """

    def __init__(self) -> None:
        self._first: dict[Place, _First] = {}
        self._unsure: dict[Place, tuple[int, int]] = {}

    @property
    def is_unsure(self) -> bool:
        """Whether less may wait than was counted."""
        return bool(self._unsure)

    def count(self, place: Place, cursor: int, end: int) -> int:
        """Count what waits between a cursor and the end of its topic, as far as is known."""
        first = self._first.get(place)
        if first is not None and first.offset > end:
            # The topic was made anew.
            del self._first[place]
            first = None
        is_exact = first is not None and first.is_command and first.offset >= cursor
        begin = cursor if first is None else max(cursor, first.offset)
        if begin < end and not is_exact:
            self._unsure[place] = (begin, end)
        else:
            self._unsure.pop(place, None)
        return max(0, end - begin)

    async def find_out(self, reader: Reading) -> dict[Place, int]:
        """Look where the first command is in what was counted unsurely; returns what waits there.

        The reader gets what is committed only. What a transaction that has not ended has written still waits.
        `count` may be called meanwhile.
        """
        counts = {}
        for place in tuple(self._unsure):
            unsure = self._unsure.pop(place, None)
            if unsure is None:
                # Counted again while another place was read, and certain by now.
                continue
            begin, end = unsure
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
