"""One cluster's tree in a store: whether it is ours, its nodes as last read, and changes of it.

Every transaction updates the position node on condition of its version. So of two writers one wins, and the position
shows whether a transaction without an answer was done. Paths are below the cluster's chroot, except in the store.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from drover.errors import ConfigurationError
from drover.events.undecodable import UNDECODABLE
from drover.projections.changes import absorb
from drover.projections.ownership import (
    OTHERS_MARKS,
    OTHERS_TOPS,
    PARENTS,
    PROJECTED,
    REQUESTS,
    SHARED,
    SUBTREES,
    depth_of,
    parent_of,
)
from drover.projections.position import POSITION_PATH, Position, decode_position, encode_position
from drover.projections.store import (
    ANY_VERSION,
    ConflictError,
    Create,
    Delete,
    Operation,
    Set,
    Store,
    StoreDeniedError,
    StoreError,
    WriteUnknownError,
    Znode,
    nodes_below,
    nothing,
    read_subtree,
)


class BeatenError(StoreError):
    """Another writer has moved the tree on; nothing of ours was written."""


class KeptError(ConflictError):
    """A node that others put into the tree cannot be removed; Drover leaves it in place from now on."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path)
        self.args = (f"{path} is not Drover's, and stays, since it cannot be removed: {why}",)


class _Mark(msgspec.Struct):
    """The content of the chroot: the maker of the tree, and its cluster."""

    made_by: str
    cluster: str


class Tree:
    """The tree of a cluster at `root`/`cluster`; `writer` names this process in the position.

    `nodes` are its nodes by the last `load` and our own transactions since, without those that were released;
    `position` likewise, None without a readable one. `others_nodes` are the nodes that the writer takes for others';
    those that could not be removed are `kept`, with all nodes above them, and are not deleted.
    """

    def __init__(self, store: Store, root: str, cluster: str, writer: str) -> None:
        self.base = f"{root.rstrip('/')}/{cluster}"
        self.cluster = cluster
        self.writer = writer
        self.nodes: dict[str, Znode] = {}
        self.position: Position | None = None
        self._root = root.rstrip("/")
        self._store = store
        self._version: int | None = None
        # The operations that make or correct the nodes above the position, in the first transaction.
        self._missing: list[Operation] = []
        self._sent: tuple[tuple[Operation, ...], Position] | None = None
        # Shared nodes whose ACL lets only an operator write them.
        self._locked: set[str] = set()
        # Nodes that others may change although Drover has credentials, by absolute path, as of the last `load`.
        self.exposed: Mapping[str, tuple[str, ...]] = {}
        self.others_nodes: frozenset[str] = frozenset()
        self.kept: frozenset[str] = frozenset()
        # The highest nodes of those that are kept.
        self._obstacles: set[str] = set()

    async def check(self) -> None:
        """Raise `ConfigurationError` unless the tree is Drover's or may become so. Changes nothing."""
        marks = [f"{place}{mark}" for place in self._others_places() for mark in OTHERS_MARKS]
        # A cluster of Drover's may have the name of such a mark.
        others = [path for path, node in (await self._store.read(marks)).items() if _cluster_of(node.data) is None]
        if others:
            raise ConfigurationError(
                f"{min(others)} belongs to a real Kafka cluster, in whose tree Drover writes no view: choose another "
                "zookeeper.root"
            )
        above = [self.base[:place] for place, sign in enumerate(self.base) if sign == "/" and place]
        there = await self._store.read([*above, self.base])
        self._missing = [Create(path, b"") for path in above if path not in there]
        mark = msgspec.json.encode({"made_by": "drover", "cluster": self.cluster, "version": 1}, order="sorted")
        node = there.get(self.base)
        if node is None:
            self._missing.append(Create(self.base, mark))
        elif _cluster_of(node.data) != self.cluster:
            if (await self._store.children([self.base]))[self.base]:
                raise ConfigurationError(
                    f"{self.base} is there and was not made by Drover: choose another zookeeper.root, or remove it"
                )
            self._missing.append(Set(self.base, mark, node.version))

    def _others_places(self) -> Iterable[str]:
        """Return the chroots that must not be a real cluster's: ours, the one above, and any that ours would be in.

        Our tree may stand beside such a cluster's own nodes, but not below them, as in its /admin.
        """
        parts = self.base.split("/")
        inside = ["/".join(parts[:depth]) for depth in range(1, len(parts)) if parts[depth] in OTHERS_TOPS]
        return dict.fromkeys((self.base, self._root, *inside))

    async def read_position(self) -> tuple[Position | None, int | None]:
        """Return the tree's present position without taking it over; the version is None if there is no such node."""
        path = f"{self.base}{POSITION_PATH}"
        node = (await self._store.read([path])).get(path)
        return (None, None) if node is None else (decode_position(node.data), node.version)

    async def load(self) -> None:
        """Read everything. Raises what `check` raises."""
        self._sent = None
        await self.check()
        self.position, self._version = await self.read_position()
        nodes = dict(await self._store.read([f"{self.base}{path}" for path in PARENTS]))
        # Others may have put nodes there that only they may read, or that have nodes below them.
        leaves = await self._store.examine([f"{self.base}{path}" for path in sorted(SHARED | PROJECTED)])
        readable = [path for path, node in leaves.items() if node.data is not None]
        leaves = {**leaves, **await nodes_below(self._store, readable)}
        nodes.update((path, Znode(node.data or b"", node.version)) for path, node in leaves.items())
        for top in SUBTREES:
            nodes.update(await read_subtree(self._store, f"{self.base}{top}"))
        self.nodes = {path[len(self.base) :]: node for path, node in nodes.items()}
        self.exposed = await self._exposures(nodes)
        # Obstacles that are gone meanwhile no longer count.
        self._obstacles &= self.nodes.keys()
        self.kept = frozenset(
            path
            for top in self._obstacles
            for path in self.nodes
            if path == top or path.startswith(f"{top}/") or top.startswith(f"{path}/")
        )

    async def exposed_holders(self) -> Mapping[str, tuple[str, ...]]:
        """Return the root, and the nodes that hold others, that others may change, with their ids.

        Nodes above the root are not Drover's: a writer there can make or remove the root only while it is empty.
        """
        return await self._store.exposures(self._holders)

    @property
    def _holders(self) -> list[str]:
        return [self._root, *(f"{self.base}{path}" for path in ("", *PARENTS, POSITION_PATH))]

    async def _exposures(self, present: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the nodes that others may change: all are looked at if one that holds others is exposed."""
        exposed = await self.exposed_holders()
        if not exposed:
            return {}
        return {**exposed, **await self._store.exposures([path for path in present if path not in self._holders])}

    async def claim(self) -> Mapping[str, tuple[str, ...]]:
        """Let only Drover write the exposed nodes, and remove the requests in them; return the exposed nodes.

        Anybody may have written those requests. Raises `ConfigurationError` for a node whose ACL Drover may not change.
        """
        exposed, self.exposed = self.exposed, {}
        for path in sorted(exposed, key=depth_of):
            try:
                await self._store.claim(path)
            except StoreDeniedError as error:
                others = ", ".join(exposed[path])
                raise ConfigurationError(
                    f"{path} may be written by {others}, and Drover may not change its ACL: a writer there could "
                    "command Drover. Remove it as a ZooKeeper administrator, or choose another zookeeper.root"
                ) from error
        if exposed:
            await self._remove_requests()
        return exposed

    async def _remove_requests(self) -> None:
        standing = () if self.position is None else self.position.standing
        requests = dict(await read_subtree(self._store, f"{self.base}{REQUESTS}"))
        requests.pop(f"{self.base}{REQUESTS}", None)
        for path in SHARED - set(standing):
            requests.update(await read_subtree(self._store, f"{self.base}{path}"))
        for path in sorted(requests, key=depth_of, reverse=True):
            await self._store.write([Delete(path, requests[path].version)])

    def release(self, paths: Iterable[str]) -> None:
        """Forget shared nodes that the fold does not have: they are requests, which the projector leaves alone."""
        for path in paths:
            below = [node_path for node_path in self.nodes if node_path.startswith(f"{path}/")]
            for each in (path, *below):
                self.nodes.pop(each, None)

    async def look(self, paths: Sequence[str]) -> set[str]:
        """Compare nodes, and the names below them, with `nodes`; return the paths that differ.

        Raises `BeatenError` if somebody else has written meanwhile, so that `nodes` is outdated.
        """
        # A kept node that may not be read cannot be compared.
        paths = [path for path in paths if path not in self.kept or self.nodes[path].version != ANY_VERSION]
        absolute = [f"{self.base}{path}" for path in paths]
        holders = [path for path in paths if _holds_projected(path)]
        nodes = await self._store.read(absolute)
        below = await self._store.children([f"{self.base}{path}" for path in holders])
        position, version = await self.read_position()
        if version != self._version:
            if version is None:
                raise ConflictError(POSITION_PATH)
            raise BeatenError(f"{self.base}: {_writer_of(position)} writes it now")
        differ = {path for path in paths if nodes.get(f"{self.base}{path}") != self.nodes.get(path)}
        for path in holders:
            names = below.get(f"{self.base}{path}", frozenset())
            differ.update(child for name in names if (child := f"{path}/{name}") not in self.nodes)
        return differ

    async def commit(
        self, operations: Sequence[Operation], position: Position, meanwhile: Callable[[], None] = nothing
    ) -> None:
        """Carry out these operations and move the position, or neither; `meanwhile` is called during that.

        Raises `BeatenError` if another writer was faster, `ConflictError` with the path below the chroot if a node is
        not as expected, and `WriteUnknownError` if `resolve` must be called before anything else.
        """
        assert self._sent is None, "the last transaction is not resolved yet"
        assert position.writer == self.writer, "a writer recognises its own transaction by its name"
        if self._locked or self.kept:
            operations = [each for operation in operations for each in self._permitted(operation)]
        data = encode_position(position)
        path = f"{self.base}{POSITION_PATH}"
        parents = [self._absolute(operation) for operation in self._parents_to_make()]
        moving = Create(path, data) if self._version is None else Set(path, data, self._version)
        # An existing position goes first, so that a beaten writer gets the error about it, not about another node.
        carried = [*self._missing, *parents, moving] if self._version is None else [*self._missing, moving, *parents]
        self._sent = (tuple(operations), position)
        try:
            await self._store.write([*carried, *(self._absolute(operation) for operation in operations)], meanwhile)
        except ConflictError as error:
            if error.path != path:
                self._sent = None
                raise self._conflict_at(error.path[len(self.base) :], operations) from error
            if not await self.resolve():
                raise BeatenError(f"{self.base} was written by another projector") from error
        except WriteUnknownError:
            raise
        except StoreDeniedError as error:
            self._sent = None
            path = (error.path or "")[len(self.base) :]
            above = parent_of(path)
            if (
                above in self.others_nodes
                and self._may_keep(path)
                and any(isinstance(each, Delete) and each.path == path for each in operations)
            ):
                # The ACL of the node above forbids it, so it forbids to remove the others beside it, too.
                self._obstacles.add(above)
                raise KeptError(path, str(error)) from error
            if path not in SHARED or path in self._locked:
                raise
            self._locked.add(path)
            raise ConflictError(path) from error
        except StoreError:
            self._sent = None
            raise
        else:
            self._done()

    async def resolve(self) -> bool:
        """Return whether the last transaction was done, by the position.

        Raises `BeatenError` if the tree has moved on otherwise, `ConflictError` if it has no position any more.
        """
        assert self._sent is not None, "there is no transaction to resolve"
        position, version = await self.read_position()
        if position == self._sent[1] and version == (0 if self._version is None else self._version + 1):
            self._done()
            return True
        (_, meant), self._sent = self._sent, None
        if version == self._version:
            return False
        if version is None:
            raise ConflictError(POSITION_PATH)
        raise BeatenError(f"{self.base}: {_writer_of(position)} has moved it to {position}, not to {meant}")

    def _done(self) -> None:
        assert self._sent is not None, "something was sent"
        operations, self.position = self._sent
        self._sent = None
        absorb(self.nodes, [*self._parents_to_make(), *operations])
        self._missing = []
        self._version = 0 if self._version is None else self._version + 1

    def _permitted(self, operation: Operation) -> tuple[Operation, ...]:
        """Adapt an operation to the ACLs: a shared node that only its operator may write is replaced as a whole.

        A kept node is not deleted, and is set instead of created.
        """
        if operation.path in self.kept and not isinstance(operation, Set):
            there = self.nodes[operation.path]
            return () if isinstance(operation, Delete) else (Set(operation.path, operation.data, there.version),)
        if isinstance(operation, Set) and operation.path in self._locked:
            return (Delete(operation.path, operation.version), Create(operation.path, operation.data))
        return (operation,)

    def _conflict_at(self, path: str, operations: Sequence[Operation]) -> ConflictError:
        """Return the exception for a refused transaction; an unreadable node with children is kept from now on."""
        if Delete(path, ANY_VERSION) in operations and self._may_keep(path):
            self._obstacles.add(path)
            return KeptError(path, "there are nodes below it, and its ACL does not let Drover read it")
        return ConflictError(path)

    def _may_keep(self, path: str) -> bool:
        """Whether an unneeded node of others may stay: not at a shared node, where it would be taken for a request."""
        return path in self.others_nodes and not any(path == each or path.startswith(f"{each}/") for each in SHARED)

    def _parents_to_make(self) -> list[Create]:
        return [Create(path, b"") for path in PARENTS if path not in self.nodes]

    def _absolute(self, operation: Operation) -> Operation:
        path = f"{self.base}{operation.path}"
        match operation:
            case Create():
                return Create(path, operation.data)
            case Set():
                return Set(path, operation.data, operation.version)
            case Delete():
                return Delete(path, operation.version)


def _cluster_of(data: bytes) -> str | None:
    """Return the cluster whose chroot has this content; None if it is not of Drover's."""
    try:
        mark = msgspec.json.decode(data, type=_Mark)
    except UNDECODABLE:
        return None
    return mark.cluster if mark.made_by == "drover" else None


def _holds_projected(path: str) -> bool:
    return path in SUBTREES or parent_of(path) in {"/admin/reassignments", "/drover/plans"}


def _writer_of(position: Position | None) -> str:
    return "somebody" if position is None else position.writer
