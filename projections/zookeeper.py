"""The store on a real ZooKeeper: the only user of kazoo, whose threads run no code of ours except the hand-over.

kazoo reconnects by itself, for ever, at most every two seconds. Without a connection a new request is refused at once;
a request that was sent has an unknown outcome if the connection is lost. A client whose answer does not come in time is
discarded, so that it sends no pending request later. Making a store lets the threads of the process take turns more
often (`TURN_S`).
"""

import asyncio
import functools
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, Id, Permissions, make_digest_acl_credential

from drover.projections.multi import Multi, encode, encode_acl
from drover.projections.store import (
    UNREADABLE,
    ConflictError,
    Create,
    Examined,
    Operation,
    StoreDeniedError,
    StoreUnavailableError,
    WriteUnknownError,
    Znode,
    nothing,
)
from drover.settings.settings import ZooKeeperOptions
from drover.time_limits import time_limit

_CONFLICTS = (BadVersionError, NoNodeError, NodeExistsError, NotEmptyError)
_DENIALS = (AuthFailedError, InvalidACLError, NoAuthError)
_FOLLOW_UPS = (RolledBackError, RuntimeInconsistency)
# How long a thread of this process may keep another one waiting. kazoo's thread sends and receives between our steps:
# with Python's default of 5 ms a transaction would not be sent before the next one is encoded, too.
TURN_S = 0.0001
# How long a write waits for kazoo's thread to take its request before it calls `meanwhile`.
TAKEN_WITHIN_S = 0.001
# Stands for the ids in an ACL that Drover may not read.
HIDDEN = "whoever its hidden ACL names"
# The most requests of one read at a time.
READS_AT_A_TIME = 200


class ZooKeeperStore:
    """See `Store` for the contract; made inside a running event loop, connects with the first request."""

    def __init__(self, options: ZooKeeperOptions) -> None:
        sys.setswitchinterval(min(TURN_S, sys.getswitchinterval()))
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._client: Any = None
        # The client whose chroot is known to exist.
        self._rooted: Any = None
        self._connecting = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    async def read(self, paths: Sequence[str]) -> Mapping[str, Znode]:
        """Return the nodes at these paths."""
        answers = await self._ask_each(paths, lambda client, path: client.get_async(path))
        return {path: Znode(data or b"", stat.version) for path, (data, stat) in answers.items()}

    async def examine(self, paths: Sequence[str]) -> Mapping[str, Examined]:
        """Return the nodes at these paths, with their identity."""
        try:
            answers = await self._ask_each(paths, lambda client, path: client.get_async(path))
        except StoreDeniedError as error:
            if not isinstance(error.__cause__, NoAuthError):
                raise
            if len(paths) > 1:
                # One of them may not be read; ask for each by itself.
                apart = [await self.examine([path]) for path in paths]
                return {path: node for some in apart for path, node in some.items()}
            # ZooKeeper does not return even the version of an unreadable node, only that it exists.
            return {paths[0]: UNREADABLE}
        return {
            path: Examined(data or b"", stat.version, stat.czxid, stat.mzxid, stat.mtime)
            for path, (data, stat) in answers.items()
        }

    async def children(self, paths: Sequence[str]) -> Mapping[str, frozenset[str]]:
        """Return the names below each of these paths."""
        answers = await self._ask_each(paths, lambda client, path: client.get_children_async(path))
        return {path: frozenset(names) for path, names in answers.items()}

    async def subtree(self, top: str) -> Mapping[str, Znode]:
        """Return a node and everything below it; only nodes with children are asked for them.

        An unreadable node has `ANY_VERSION`, and the nodes below it are left out.
        """
        nodes: dict[str, Znode] = {}
        level = [top]
        while level:
            try:
                answers = await self._ask_each(level, lambda client, path: client.get_async(path))
            except StoreDeniedError:
                there = await self.examine(level)
                hidden = {path: Znode(b"", node.version) for path, node in there.items() if node.data is None}
                nodes.update(hidden)
                level = [path for path in there if path not in hidden]
                continue
            nodes.update((path, Znode(data or b"", stat.version)) for path, (data, stat) in answers.items())
            holders = [path for path, (_, stat) in answers.items() if stat.numChildren]
            names = await self.children(holders)
            level = [f"{path.rstrip('/')}/{name}" for path in holders for name in sorted(names.get(path, ()))]
        return nodes

    async def write(self, operations: Sequence[Operation], meanwhile: Callable[[], None] = nothing) -> None:
        """Carry out all operations or none."""
        client = await self._connected()
        if client.chroot and client is not self._rooted:
            await self._make_chroot(client)
        taken = threading.Event()
        data = encode(client.chroot, operations, self._acl)
        result = client.handler.async_result()
        client._call(Multi(data, taken.set), result)  # noqa: SLF001 - no public way to send encoded bytes (decision 7)
        # Blocks the event loop until kazoo's thread has taken the request; a callback through the loop takes longer.
        taken.wait(TAKEN_WITHIN_S)
        meanwhile()
        try:
            results = await self._answer(client, result)
        except _DENIALS as error:
            raise self._denied(operations[0].path, error) from error
        except (KazooException, TimeoutError) as error:
            raise WriteUnknownError(f"{self._where}: the answer to a transaction was lost ({error!r})") from error
        for operation, result in zip(operations, results, strict=True) if results else ():
            if isinstance(result, _CONFLICTS):
                raise ConflictError(operation.path)
            if isinstance(result, _DENIALS):
                raise self._denied(operation.path, result)
            if isinstance(result, Exception) and not isinstance(result, _FOLLOW_UPS):
                raise StoreUnavailableError(f"{self._where}: {operation.path} was not written ({result!r})")

    async def exposures(self, paths: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the nodes that others may change, with their ids; a node's ACL may be hidden from Drover, too."""
        if not self._options.has_credentials:
            return {}
        try:
            lists = await self._ask_each(paths, lambda client, path: client.get_acls_async(path))
        except StoreDeniedError as error:
            if not isinstance(error.__cause__, NoAuthError):
                raise
            if len(paths) == 1:
                return {paths[0]: (HIDDEN,)}
            apart = [await self.exposures([path]) for path in paths]
            return {path: ids for some in apart for path, ids in some.items()}
        exposed = {path: tuple(self._others_in(acl)) for path, (acl, _) in lists.items()}
        return {path: ids for path, ids in exposed.items() if ids}

    async def claim(self, path: str) -> None:
        """Give a node the ACL of nodes that Drover makes."""
        client = await self._connected()
        try:
            await self._answer(client, client.set_acls_async(path, self._entries))
        except _DENIALS as error:
            raise self._denied(path, error) from error
        except NoNodeError:
            return
        except (KazooException, TimeoutError) as error:
            raise StoreUnavailableError(f"{self._where} did not answer ({error!r})") from error

    def _others_in(self, acl: Sequence[ACL]) -> Iterator[str]:
        """Yield the ids in a node's ACL that may do more than read it and are not the writer's."""
        options = self._options
        mine = None if options.username is None else make_digest_acl_credential(options.username, options.password)
        for entry in acl:
            is_mine = entry.id == Id("digest", mine) or (entry.id.scheme == "x509" and options.cert_file is not None)
            if entry.perms & ~Permissions.READ and not is_mine:
                yield f"{entry.id.scheme}:{entry.id.id}"

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await asyncio.to_thread(_end, client)
        if self._closing:
            await asyncio.wait(self._closing)

    @property
    def _where(self) -> str:
        return f"ZooKeeper at {self._options.hosts}"

    @functools.cached_property
    def _acl(self) -> bytes:
        return encode_acl(self._entries)

    @functools.cached_property
    def _entries(self) -> Sequence[ACL]:
        if not self._options.has_credentials:
            return tuple(OPEN_ACL_UNSAFE)
        readers = [Id(*reader.split(":", 1)) for reader in self._options.readers]
        return (*CREATOR_ALL_ACL, *(ACL(Permissions.READ, reader) for reader in readers))

    def _denied(self, path: str, error: Exception) -> StoreDeniedError:
        return StoreDeniedError(
            f"{self._where} forbids to use {path} ({type(error).__name__}): check zookeeper.username and "
            "zookeeper.password, and the node's ACL",
            path,
        )

    async def _ask_each(self, paths: Sequence[str], ask: Callable[[Any, str], Any]) -> dict[str, Any]:
        answered: dict[str, Any] = {}
        for first in range(0, len(paths), READS_AT_A_TIME):
            some = paths[first : first + READS_AT_A_TIME]
            client = await self._connected()
            # This server may lag behind the one that was written to: it answers the reads after this sync.
            synced = self._answer(client, client.sync_async("/"))
            asked = [self._answer(client, ask(client, path)) for path in some]
            _, *answers = await asyncio.gather(synced, *asked, return_exceptions=True)
            for path, answer in zip(some, answers, strict=True):
                if isinstance(answer, _DENIALS):
                    raise self._denied(path, answer) from answer
                if isinstance(answer, KazooException | TimeoutError) and not isinstance(answer, NoNodeError):
                    raise StoreUnavailableError(f"{self._where} did not answer ({answer!r})") from answer
                if isinstance(answer, BaseException):
                    if not isinstance(answer, NoNodeError):
                        raise answer
                    continue
                answered[path] = answer
        return answered

    async def _connected(self) -> Any:
        async with self._connecting:
            # Polled, because kazoo's event is a thread's, and this waits only while there is no connection.
            deadline = self._loop.time() + self._options.request_timeout_s
            # Looked up each time, since a request without an answer may have discarded the client meanwhile.
            while not (client := self._present()).connected:
                if client.client_state == "AUTH_FAILED":
                    self._discard(client)
                    raise StoreDeniedError(f"{self._where} does not accept the credentials: check zookeeper.username")
                if self._loop.time() > deadline:
                    self._discard(client)
                    remedy = "check that it runs"
                    if self._options.use_tls:
                        remedy += ", that its certificate names this host, and that zookeeper.ca_file signed it"
                    raise StoreUnavailableError(f"{self._where} cannot be reached: {remedy}")
                await asyncio.sleep(0.02)
            return client

    def _present(self) -> Any:
        if self._client is None:
            self._client = made(self._options)
            self._client.start_async()
        return self._client

    async def _make_chroot(self, client: Any) -> None:
        """Make the chroot of `hosts` if it is not there, as Kafka's brokers do."""
        try:
            is_there = await self._answer(client, client.exists_async("/")) is not None
            refusals = [] if is_there else await self._make_parts(client, client.chroot.split("/"))
        except (KazooException, TimeoutError) as error:
            raise StoreUnavailableError(f"{self._where} did not answer ({error!r})") from error
        # The last part is missing if it, or one before it, could not be made.
        if refusals and refusals[-1] is not None and not isinstance(refusals[-1], NodeExistsError):
            denied = next((refusal for refusal in refusals if isinstance(refusal, _DENIALS)), None)
            if denied is not None:
                raise StoreDeniedError(
                    f"{self._where}: the chroot {client.chroot} is not there, and Drover may not make it "
                    f"({type(denied).__name__}): make it, or check zookeeper.username and zookeeper.password"
                ) from denied
        self._rooted = client

    async def _make_parts(self, client: Any, parts: Sequence[str]) -> list[Exception | None]:
        """Make a node and those above it; return the refusal of each, None for one that was made."""
        refusals: list[Exception | None] = []
        for depth in range(2, len(parts) + 1):
            result = client.handler.async_result()
            data = encode("", [Create("/".join(parts[:depth]), b"")], self._acl)
            client._call(Multi(data, nothing), result)  # noqa: SLF001 - kazoo's own `create` would put the chroot before it
            # If this node exists, or may not be made, the next one shows whether something is missing.
            answers = await self._answer(client, result)
            refusals.append(next((answer for answer in answers or () if isinstance(answer, Exception)), None))
        return refusals

    async def _answer(self, client: Any, result: Any) -> Any:
        """Wait for kazoo's answer. Raises its exceptions, and `TimeoutError`."""
        future: asyncio.Future[Any] = self._loop.create_future()
        result.rawlink(functools.partial(self._hand_over, _settle, future))
        try:
            async with time_limit(self._options.request_timeout_s):
                return await future
        except TimeoutError:
            self._discard(client)
            raise

    def _hand_over(self, call: Callable[..., None], *arguments: Any) -> None:
        # Runs in kazoo's thread; at the end of the process the loop may be closed.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)

    def _discard(self, client: Any) -> None:
        if client is not self._client:
            return
        self._client = None
        ending = asyncio.create_task(asyncio.to_thread(_end, client))
        self._closing.add(ending)
        ending.add_done_callback(self._closing.discard)


def _settle(future: "asyncio.Future[Any]", result: Any) -> None:
    if future.done():
        return
    if result.exception is None:
        future.set_result(result.value)
    else:
        future.set_exception(result.exception)


def made(options: ZooKeeperOptions) -> Any:
    """Create kazoo's client without starting it."""
    logger = logging.getLogger("drover.zookeeper")
    # kazoo's own log lines are dropped, because the caller reports each fault.
    logger.setLevel(logging.CRITICAL)
    auth = [("digest", f"{options.username}:{options.password}")] if options.username is not None else None
    return KazooClient(
        hosts=options.hosts,
        timeout=options.session_timeout_s,
        auth_data=auth,
        connection_retry={"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 2.0},
        use_ssl=options.use_tls,
        verify_certs=True,
        check_hostname=options.use_tls,
        ca=options.ca_file,
        certfile=options.cert_file,
        keyfile=options.key_file,
        # None would let OpenSSL ask for a password on the terminal.
        keyfile_password=options.key_password or "",
        logger=logger,
    )


def _end(client: Any) -> None:
    client.stop()
    client.close()
