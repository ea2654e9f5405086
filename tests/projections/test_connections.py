"""What happens between Drover and a real ZooKeeper: sessions end, answers get lost, the quorum goes, TLS is checked."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from drover.local import LocalZooKeeper, wait_until
from drover.local.certificates import make_certificates
from drover.projections.store import Create, Store, StoreUnavailableError, WriteUnknownError
from drover.projections.writer import ClusterWriter, Role
from drover.projections.zookeeper import ZooKeeperStore
from drover.settings.settings import ZooKeeperOptions
from tests.projections.ensemble import Ensemble
from tests.projections.logs import prefixes, valid_batches, walked_log
from tests.projections.notes import Notes
from tests.projections.observer import observing
from tests.projections.proxy import Cut, Proxy
from tests.projections.rig import zookeeper_store
from tests.projections.test_faults import PATIENCE, paced, writer_on
from tests.projections.test_writer import at_the_end, running

pytestmark = pytest.mark.story


def connected(hosts: str) -> ZooKeeperStore:
    """Connect with little patience."""
    return ZooKeeperStore(ZooKeeperOptions(hosts, **PATIENCE))  # type: ignore[arg-type]  # floats only


async def until_writing(writer: ClusterWriter) -> None:
    await wait_until(lambda: writer.role is Role.WRITING, what="it writes")


async def test_a_session_that_expires_costs_nothing(zookeeper: LocalZooKeeper, real_store: Store, root: str) -> None:
    log, notes, store = await walked_log(4), Notes(), zookeeper_store(zookeeper, **PATIENCE)
    wanted, batches = prefixes(log), len(valid_batches(log))
    writer = writer_on(store, root, "w", notes)
    ended: list[int] = []
    async with observing(real_store, root, wanted) as observer, running(writer):
        await until_writing(writer)
        for part in range(3):
            session = store._client.client_id
            # A client that takes over the session and closes it: for the server it is over.
            feeding = asyncio.create_task(paced([writer], log, part * batches // 3, (part + 1) * batches // 3))
            ended.append(session[0])
            await wait_until(partial(has_lost, store, zookeeper.hosts, session), what="the end of the session")
            await feeding
            await wait_until(lambda: session_of(store) not in {0, *ended}, what="a new session")
            await wait_until(lambda: not writer.backlog, what="it goes on")
        await at_the_end(real_store, root, wanted)
        await wait_until(lambda: observer.sights[-1:] == [max(wanted)], what="the end was seen")
        assert session_of(store) not in ended, "the last session did not end"
    assert len(set(ended)) == 3
    assert notes.drifted == []
    await store.close()


async def has_lost(store: ZooKeeperStore, hosts: str, session: tuple[int, bytes]) -> bool:
    """End a session, again if the store has connected with it before it was closed."""
    await asyncio.to_thread(end_session, hosts, session)
    return session_of(store) != session[0]


def session_of(store: ZooKeeperStore) -> int:
    """The session's id; 0 while there is none."""
    found: tuple[int, bytes] | None = store._client.client_id
    return 0 if found is None else found[0]


def end_session(hosts: str, session: tuple[int, bytes]) -> None:
    client = KazooClient(hosts, client_id=session)
    client.start()
    client.stop()
    client.close()


@pytest.mark.parametrize("cut", list(Cut))
async def test_a_transaction_whose_request_or_answer_is_lost_is_done_exactly_once(
    zookeeper: LocalZooKeeper, real_store: Store, root: str, cut: Cut
) -> None:
    log, notes, proxy = await walked_log(5), Notes(), Proxy(zookeeper.hosts)
    wanted, batches = prefixes(log), len(valid_batches(log))
    await proxy.start()
    store = connected(proxy.hosts)
    writer = writer_on(store, root, "w", notes)
    async with observing(real_store, root, wanted) as observer, running(writer):
        await until_writing(writer)
        for part in range(4):
            proxy.cut_next(cut)
            await paced([writer], log, part * batches // 4, (part + 1) * batches // 4)
            await wait_until(lambda: not writer.backlog, what="it goes on")
        await at_the_end(real_store, root, wanted)
        await wait_until(lambda: observer.sights[-1:] == [max(wanted)], what="the end was seen")
    assert proxy.cuts == 4
    assert [type(error) for error in notes.errors].count(WriteUnknownError) >= 4, notes.errors
    assert notes.drifted == []
    await store.close()
    await proxy.stop()


async def test_without_a_quorum_everything_waits_and_nothing_is_lost(tmp_path: Path) -> None:
    log, notes, ensemble = await walked_log(6), Notes(), Ensemble(tmp_path)
    wanted, batches = prefixes(log), len(valid_batches(log))
    try:
        await ensemble.start(1, 2, 3)
        await ensemble.until_serving(1, 2, 3)
        store, bystander = (connected(ensemble.hosts) for _ in range(2))
        writer = writer_on(store, "/drover", "w", notes)
        async with observing(bystander, "/drover", wanted) as observer, running(writer):
            await until_writing(writer)
            await paced([writer], log, 0, batches // 2)
            await wait_until(lambda: bool(observer.sights), what="the tree was seen whole")
            await ensemble.kill(1, 3)
            await paced([writer], log, batches // 2, batches)
            await wait_until(lambda: writer.last_error is not None, what="it is said")
            assert writer.backlog
            assert len(notes.errors) < 60, "it spins"
            await ensemble.start(1)
            await ensemble.until_serving(1, 2)
            await at_the_end(bystander, "/drover", wanted)
            await wait_until(lambda: observer.sights[-1:] == [max(wanted)], what="the end was seen")
        assert notes.drifted == []
        await store.close()
        await bystander.close()
    finally:
        await ensemble.stop()


# kazoo leaves a socket whose handshake has failed to the collector of garbage.
@pytest.mark.filterwarnings(r"ignore:Exception ignored in. <ssl\.SSLSocket:pytest.PytestUnraisableExceptionWarning")
async def test_over_tls_the_right_host_is_written_to_and_the_wrong_one_is_not(tmp_path: Path) -> None:
    made = make_certificates(["zookeeper", "drover"], hosts=["localhost"])
    authority, server, client = (tmp_path / f"{name}.pem" for name in ("authority", "server", "client"))
    stranger = tmp_path / "stranger.pem"
    authority.write_text(made.authority)
    server.write_text(made.keystores["zookeeper"])
    client.write_text(made.keystores["drover"])
    stranger.write_text(make_certificates([]).authority)
    zookeeper = LocalZooKeeper(
        tmp_path / "zookeeper",
        [
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            # Both on one port: the probe that waits for the start knows no TLS.
            "client.portUnification=true",
            f"ssl.keyStore.location={server}",
            f"ssl.trustStore.location={authority}",
            "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        ],
    )
    await zookeeper.start()
    try:
        port = zookeeper.hosts.partition(":")[2]
        tls: dict[str, Any] = {
            "use_tls": True,
            "cert_file": str(client),
            "key_file": str(client),
            "request_timeout_s": 4.0,
        }
        trusted = ZooKeeperStore(ZooKeeperOptions(f"localhost:{port}", ca_file=str(authority), **tls))
        await trusted.write([Create("/ours", b"1")])
        assert (await trusted.read(["/ours"]))["/ours"].data == b"1"
        await trusted.close()
        # Whom the certificate names is the owner: without it nobody may write, nor read.
        await asyncio.to_thread(denied, zookeeper.hosts)
        for hosts, ca_file in ((zookeeper.hosts, authority), (f"localhost:{port}", stranger)):
            refused = ZooKeeperStore(ZooKeeperOptions(hosts, ca_file=str(ca_file), **{**tls, "request_timeout_s": 1.0}))
            with pytest.raises(StoreUnavailableError, match="certificate"):
                await refused.read(["/ours"])
            await refused.close()
    finally:
        await zookeeper.stop()


def denied(hosts: str) -> None:
    client = KazooClient(hosts)
    client.start()
    try:
        with pytest.raises(NoAuthError):
            client.get("/ours")
    finally:
        client.stop()
        client.close()


async def test_a_chroot_that_is_not_there_yet_is_made(zookeeper: LocalZooKeeper, root: str) -> None:
    store = ZooKeeperStore(ZooKeeperOptions(f"{zookeeper.hosts}{root}/tools"))
    assert await store.read([root]) == {}
    await store.write([Create(root, b"1")])
    assert (await store.read([root]))[root].data == b"1"
    await store.close()
