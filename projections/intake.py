"""Commands from nodes: find requests of operators, send them as commands, and write answers beside them.

A request stays until the log has its outcome. After a kill at any time, a successor therefore sees the open requests in
the nodes, and the decided ones in the log. The order of requests is the order in the log (X5).
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from drover.errors import ConfigurationError, LogUnavailableError
from drover.events.bounds import INTAKE_BY
from drover.events.commands import AnyCommand
from drover.events.records import Batch, Outcome
from drover.events.refusals import Refusal
from drover.projections.changes import transactions
from drover.projections.commands import (
    BLACKLIST,
    BUSY,
    CANCEL,
    ERROR_SUFFIX,
    FREEZE,
    PLAN,
    QUEUE,
    Fault,
    answers,
    command_of,
    command_of_removal,
    earlier_identity_of,
    error_document,
    fault_of,
    identity_of,
    refused_request,
    request_number,
)
from drover.projections.monitor import Monitor
from drover.projections.ownership import PARENTS, REQUESTS, SHARED
from drover.projections.position import POSITION_PATH, Place, Position, decode_position, is_marked
from drover.projections.store import (
    MOST_OPERATIONS,
    ConflictError,
    Create,
    Delete,
    Examined,
    Operation,
    Set,
    Store,
    StoreDeniedError,
    StoreError,
    nodes_below,
)
from drover.projections.writer import ClusterWriter, Role

LOOK_S = 0.5
RETRY_S = 2.0
# A removed document is checked once more, because removing the whole tree is not a request.
GONE_S = 0.2
MOST_OUTCOMES = 10_000
MOST_ERRORS = 100
# The most requests that are read at a time; the others wait for the next look.
MOST_REQUESTS = 100
# The paths of a stage wait until the commands of earlier stages have their outcomes.
STAGES = (frozenset({FREEZE, BLACKLIST}), frozenset({REQUESTS, PLAN, QUEUE}), frozenset({CANCEL}))

Submit = Callable[[AnyCommand], Awaitable[None]]


class _Recorded(NamedTuple):
    """The outcome of a command, and the place behind the cluster's last event in its record; None without an event."""

    outcome: Outcome
    at_ms: int
    place: Place | None


class _Change(Enum):
    """The change of a path by an operator."""

    NOTHING = "nothing"
    WRITTEN = "written"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class _Seen:
    """The nodes at one moment; paths are below the chroot.

    `later` is the position afterwards, `is_still` says that it did not move meanwhile. `requests` are in the order of
    their numbers, `errors` the answers to some; `is_whole` says that no request was left for the next look.
    """

    position: Position
    mzxid: int
    nodes: Mapping[str, Examined]
    requests: tuple[str, ...]
    errors: tuple[str, ...]
    later: Position
    is_still: bool
    is_whole: bool

    def judge(self, path: str) -> _Change:
        """Return the change of a path; none for now if a projector may just have written it."""
        node, mark = self.nodes.get(path), self.position.standing.get(path)
        # With the same mark before and after, no projector has touched it: a new document has another mark.
        is_still = self.is_still or (mark is not None and self.later.standing.get(path) == mark)
        if node is None:
            return _Change.REMOVED if mark is not None and is_still else _Change.NOTHING
        if is_marked(mark, node.data):
            return _Change.NOTHING
        is_certain = is_still or node.mzxid <= self.mzxid or path not in SHARED
        return _Change.WRITTEN if is_certain else _Change.NOTHING


class Intake:
    """Reads one cluster's requests; several may do so at once. Raises `StoreError`, `LogUnavailableError`."""

    def __init__(
        self, cluster: str, base: str, store: Store, submit: Submit, monitor: Monitor, look_s: float = LOOK_S
    ) -> None:
        self._cluster = cluster
        self._base = base
        self._store = store
        self._submit = submit
        self._monitor = monitor
        self._look_s = look_s
        self._outcomes: dict[str, _Recorded] = {}
        self._asked: set[str] = set()
        # The nodes whose refusal was sent to the log, because they became no command.
        self._refused: dict[str, None] = {}
        # Versions of nodes that others' ACLs keep Drover from removing, by path; and how many of them were passed over.
        self._kept: dict[str, str] = {}
        self._passed = 0
        self._looking = asyncio.Lock()

    def recorded(self, offset: int, batch: Batch) -> None:
        """Collect the outcomes of commands from nodes; the first outcome of each counts."""
        place: Place | None = None
        for number, event in enumerate(batch.events, start=1):
            if event.cluster == self._cluster:
                place = Place(offset + 1, 0) if number == len(batch.events) else Place(offset, number)
        for outcome in batch.outcomes:
            # A command of somebody else under such an id was refused, and has nothing to do with the node.
            if outcome.cluster != self._cluster or outcome.by != INTAKE_BY:
                continue
            # A repetition counts only if the first outcome is not remembered any more.
            if outcome.verdict != "duplicate" or outcome.id in self._asked:
                self._record(outcome, batch.at_ms, place)
        for remembered in (self._outcomes, self._refused):
            while len(remembered) > MOST_OUTCOMES:
                del remembered[next(iter(remembered))]

    def _record(self, outcome: Outcome, at_ms: int, place: Place | None) -> None:
        """Keep the first outcome of a command."""
        self._outcomes.setdefault(outcome.id, _Recorded(outcome, at_ms, place))
        self._asked.discard(outcome.id)

    async def run(self, writer: ClusterWriter, caught_up: asyncio.Event) -> None:
        """Look for requests for ever, while this process writes the tree."""
        await caught_up.wait()
        while True:
            await asyncio.sleep(self._look_s)
            if writer.role is not Role.WRITING:
                continue
            try:
                writer.recheck(await self.look())
            except (StoreError, LogUnavailableError, ConfigurationError) as error:
                self._monitor.projection_failed(self._cluster, error)
                await asyncio.sleep(RETRY_S)

    async def see(self) -> None:
        """Handle every request at once, before nodes may be overwritten."""
        await self.look(at_once=True)

    async def look(self, *, at_once: bool = False) -> tuple[str, ...]:
        """Send new requests, and answer those that have an outcome.

        Returns Drover's documents that somebody has changed. With `at_once` no request waits for its turn.
        """
        async with self._looking:
            seen = await self._see()
            if seen is None:
                return ()
            waits = False
            for stage in STAGES:
                if waits and not at_once:
                    break
                for path in _paths(stage, seen):
                    waits = await self._treat(path, seen) or waits
            await self._tidy(seen)
            shared = sorted(SHARED & seen.position.standing.keys())
            return tuple(path for path in shared if seen.judge(path) is not _Change.NOTHING)

    async def _see(self) -> _Seen | None:
        """Read the nodes to judge; None while there is no complete tree."""
        position_path, above = f"{self._base}{POSITION_PATH}", f"{self._base}{REQUESTS}"
        before = (await self._store.examine([position_path])).get(position_path)
        position = None if before is None or before.data is None else decode_position(before.data)
        if before is None or position is None or position.building:
            return None
        names = (await self._store.children([above])).get(above, frozenset())
        requests, is_whole = self._requests_of(names)
        answered = ((request_number(name.removesuffix(ERROR_SUFFIX)), name) for name in names)
        errors = sorted((number, name) for number, name in answered if number is not None)
        nodes = await self._store.examine([f"{self._base}{path}" for path in (*sorted(SHARED), *requests)])
        after = (await self._store.examine([position_path])).get(position_path)
        later = None if after is None or after.data is None else decode_position(after.data)
        if after is None or later is None or later.building:
            return None
        return _Seen(
            position=position,
            later=later,
            mzxid=before.mzxid,
            nodes={path[len(self._base) :]: node for path, node in nodes.items()},
            requests=requests,
            errors=tuple(f"{REQUESTS}/{name}" for _, name in errors if name.endswith(ERROR_SUFFIX)),
            is_still=after.mzxid == before.mzxid,
            is_whole=is_whole,
        )

    def _requests_of(self, names: Iterable[str]) -> tuple[tuple[str, ...], bool]:
        """Choose the requests to look at, by their number, and return whether no new one is left out.

        Decided requests that could not be removed give way to others. They are looked at in turns, since an operator
        may write one again.
        """
        numbered = sorted((number, name) for name in names if (number := request_number(name)) is not None)
        done = [each for each in numbered if f"{REQUESTS}/{each[1]}" in self._kept]
        due = sorted({*numbered}.difference(done)) if done else numbered
        turn = done[self._passed : self._passed + MOST_REQUESTS]
        self._passed = self._passed + MOST_REQUESTS if self._passed + MOST_REQUESTS < len(done) else 0
        chosen = sorted([*due[:MOST_REQUESTS], *turn])
        return tuple(f"{REQUESTS}/{name}" for _, name in chosen), len(due) <= MOST_REQUESTS

    async def _treat(self, path: str, seen: _Seen) -> bool:
        """Handle a path; return whether its command is still undecided."""
        verdict = seen.judge(path)
        if verdict is _Change.REMOVED:
            return await self._take_removal(path, seen.position.standing[path])
        if verdict is _Change.NOTHING:
            return False
        node, is_standing = seen.nodes[path], path in seen.position.standing
        identity = identity_of(path, node)
        recorded = self._outcomes.get(identity) or self._outcomes.get(earlier_identity_of(node))
        if recorded is not None:
            # Until the tree has its effects, the projector is about to overwrite the node, which must not be gone.
            is_over = recorded.place is None or seen.position.place >= recorded.place
            await self._answer(
                path,
                node,
                fault_of(recorded.outcome),
                recorded.at_ms,
                recorded.outcome.refusals,
                remove=not is_standing and (is_over or path in seen.requests),
                is_repeated=recorded.outcome.verdict == "duplicate",
            )
            return False
        if self._kept.get(path) == identity:
            return False
        if identity in self._asked:
            return True
        busy = BUSY.get(path) if is_standing else None
        command = busy or command_of(path, node, self._cluster)
        if isinstance(command, Fault):
            if identity not in self._refused and not await self._is_answered(path, node):
                await self._submit(refused_request(path, node, command, self._cluster))
            self._refused[identity] = None
            await self._answer(path, node, command, int(time.time() * 1000), remove=not is_standing)
            return False
        await self._send(command)
        return True

    async def _take_removal(self, path: str, mark: str) -> bool:
        command = command_of_removal(path, mark, self._cluster)
        if command is None or command.id in self._outcomes:
            return False
        if command.id not in self._asked:
            if not await self._is_removed(path, mark):
                return False
            await self._send(command)
        return True

    async def _is_removed(self, path: str, mark: str) -> bool:
        """Whether only this document was removed, and not the whole tree."""
        await asyncio.sleep(GONE_S)
        around = [f"{self._base}{each}" for each in (*PARENTS, POSITION_PATH)]
        there = await self._store.examine([*around, f"{self._base}{path}"])
        last = there.get(f"{self._base}{POSITION_PATH}")
        position = None if last is None or last.data is None else decode_position(last.data)
        return there.keys() == set(around) and position is not None and position.standing.get(path) == mark

    async def _send(self, command: AnyCommand) -> None:
        await self._submit(command)
        # Its outcome may have come first.
        if command.id not in self._outcomes:
            self._asked.add(command.id)

    async def _answer(
        self,
        path: str,
        node: Examined,
        fault: Fault | None,
        at_ms: int,
        refusals: Sequence[Refusal] = (),
        *,
        remove: bool,
        is_repeated: bool = False,
    ) -> None:
        """Write the answer beside a node, or remove an earlier one; with `remove` the node is deleted, too.

        The answer to a repeated command was given the first time, and stays.
        """
        absolute = f"{self._base}{path}"
        error_path = f"{absolute}{ERROR_SUFFIX}"
        there = (await self._store.examine([error_path])).get(error_path)
        operations: list[Operation] = []
        if remove and await self._empty(path, node):
            operations.append(Delete(absolute, node.version))
        if fault is None:
            if there is not None and not is_repeated and await self._empty(f"{path}{ERROR_SUFFIX}", there):
                operations.append(Delete(error_path, there.version))
        elif there is None:
            operations.append(Create(error_path, error_document(node, fault, at_ms, refusals)))
        elif not answers(there.data, node):
            operations.append(Set(error_path, error_document(node, fault, at_ms, refusals), there.version))
        if operations:
            await self._write(operations)

    async def _empty(self, path: str, node: Examined) -> bool:
        """Remove the nodes below a node; return whether it can be deleted itself, which somebody's ACL may forbid.

        Such a node stays. Its version has been decided, so that it is not carried out again.
        """
        version = identity_of(path, node)
        if self._kept.get(path) == version:
            return False
        below = await nodes_below(self._store, [] if node.data is None else [f"{self._base}{path}"])
        try:
            for operations in transactions((Delete(each, there.version),) for each, there in reversed(below.items())):
                await self._write(operations)
        except StoreDeniedError as error:
            self._kept[path] = version
            self._monitor.projection_failed(self._cluster, error)
            return False
        return True

    async def _is_answered(self, path: str, node: Examined) -> bool:
        """Whether the error node is about this version already, so that the log has the refusal, too."""
        error_path = f"{self._base}{path}{ERROR_SUFFIX}"
        there = (await self._store.examine([error_path])).get(error_path)
        return there is not None and answers(there.data, node)

    async def _tidy(self, seen: _Seen) -> None:
        """Remove all but the latest answers to requests."""
        old = [f"{self._base}{path}" for path in seen.errors[:-MOST_ERRORS]]
        there = await self._store.examine(old)
        if there:
            await self._write([Delete(path, node.version) for path, node in there.items()][:MOST_OPERATIONS])

    async def _write(self, operations: Sequence[Operation]) -> None:
        # Nodes that have changed meanwhile are handled at the next look.
        with contextlib.suppress(ConflictError):
            try:
                await self._store.write(operations)
            except StoreDeniedError as error:
                # The node's ACL forbids the write; its parent's may let Drover replace the node.
                replaced = [each for operation in operations for each in _replacing(operation, error.path)]
                if len(replaced) == len(operations):
                    raise
                await self._store.write(replaced)


def _replacing(operation: Operation, path: str | None) -> tuple[Operation, ...]:
    """Replace the node at this path as a whole instead of setting it."""
    if isinstance(operation, Set) and operation.path == path:
        return (Delete(path, operation.version), Create(path, operation.data))
    return (operation,)


def _paths(stage: frozenset[str], seen: _Seen) -> tuple[str, ...]:
    """List the paths of a stage: requests come before the old plan node (R236-24), the queue after both."""
    if REQUESTS not in stage:
        return tuple(sorted(stage))
    return (*seen.requests, PLAN, QUEUE) if seen.is_whole else seen.requests
