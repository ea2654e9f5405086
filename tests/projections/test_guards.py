"""Whose tree it is, and who may read and write it: on a real ZooKeeper, which enforces it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import ACL, CREATOR_ALL_ACL, Id, Permissions, make_digest_acl_credential
from msgspec.structs import replace

from drover.errors import ConfigurationError
from drover.local import LocalZooKeeper, wait_until
from drover.projections.commands import PLAN
from drover.projections.comparison import compare
from drover.projections.ownership import REQUESTS
from drover.projections.store import ConflictError, Create, Delete, Store, StoreDeniedError, StoreUnavailableError
from drover.projections.tree import BeatenError, Tree
from drover.projections.writer import Role
from drover.projections.zookeeper import ZooKeeperStore, made
from drover.settings.settings import ZooKeeperOptions, ZooKeeperSettings
from tests.projections.logs import prefixes, walked_log
from tests.projections.notes import Notes
from tests.projections.rig import zookeeper_store
from tests.projections.test_rebuild import reading
from tests.projections.test_writer import at_the_end, fed, running, writer_on
from tests.shard.world import CLUSTER

OWNER, READER, STRANGER = "drover:secret", "ops:readonly", "stranger:none"


@pytest_asyncio.fixture(loop_scope="session")
async def owned(zookeeper: LocalZooKeeper) -> AsyncIterator[Store]:
    """A store with credentials, whose nodes a group may read."""
    username, password = OWNER.split(":")
    readers = (f"digest:{make_digest_acl_credential(*READER.split(':'))}",)
    made_store = zookeeper_store(zookeeper, username=username, password=password, readers=readers)
    yield made_store
    await made_store.close()


@pytest.mark.parametrize("mark", ["/brokers/ids", "/controller", "/admin/delete_topics", "/cluster/id"])
async def test_the_tree_of_a_real_cluster_is_refused_and_not_touched(store: Store, root: str, mark: str) -> None:
    base = f"{root}/{CLUSTER}"
    places = [f"{base}{mark}"[:place] for place, sign in enumerate(f"{base}{mark}") if sign == "/" and place]
    await store.write([*(Create(place, b"") for place in places), Create(f"{base}{mark}", b"")])
    tree = Tree(store, root, CLUSTER, "w")
    with pytest.raises(ConfigurationError, match="real Kafka cluster"):
        await tree.check()
    with pytest.raises(ConfigurationError, match="real Kafka cluster"):
        await tree.load()
    assert f"{base}/drover" not in await store.read([f"{base}/drover"])


async def test_a_real_clusters_chroot_is_no_root_either(store: Store, root: str) -> None:
    await store.write([Create(root, b""), Create(f"{root}/brokers", b""), Create(f"{root}/brokers/ids", b"")])
    with pytest.raises(ConfigurationError, match=r"zookeeper\.root"):
        await Tree(store, root, CLUSTER, "w").check()


async def test_a_place_with_something_of_others_in_it_is_refused(store: Store, root: str) -> None:
    base = f"{root}/{CLUSTER}"
    await store.write([Create(root, b""), Create(base, b"mine"), Create(f"{base}/notes", b"")])
    with pytest.raises(ConfigurationError, match="was not made by Drover"):
        await Tree(store, root, CLUSTER, "w").check()
    await store.write([Delete(f"{base}/notes", 0)])
    await Tree(store, root, CLUSTER, "w").check()


async def test_a_refused_place_stops_nobody_else_and_is_said(store: Store, root: str) -> None:
    base = f"{root}/{CLUSTER}"
    await store.write([Create(root, b""), Create(base, b""), Create(f"{base}/controller", b"")])
    notes = Notes()
    writer = writer_on(store, root, "w", notes)
    fed(writer, await walked_log(1), last=10)
    async with running(writer):
        await wait_until(lambda: writer.last_error is not None, what="it is said")
    assert writer.last_error is not None
    assert "real Kafka cluster" in writer.last_error
    assert len(notes.errors) == 1, "it does not spin"


async def test_of_two_trees_on_one_position_one_is_beaten(store: Store, root: str) -> None:
    notes = Notes()
    writer = writer_on(store, root, "w", notes)
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING, what="it writes")
    first, second = Tree(store, root, CLUSTER, "first"), Tree(store, root, CLUSTER, "second")
    await first.load()
    await second.load()
    assert first.position is not None
    mine, theirs = (replace(first.position, writer=name) for name in ("first", "second"))
    await first.commit([Create("/admin/failed_brokers/1", b"1")], mine)
    with pytest.raises(BeatenError):
        await second.commit([Create("/admin/failed_brokers/2", b"2")], theirs)
    with pytest.raises(ConflictError) as raised:
        await first.commit([Create("/admin/failed_brokers/1", b"1")], mine)
    assert raised.value.path == "/admin/failed_brokers/1"


@pytest.mark.story
async def test_with_credentials_others_cannot_write_and_only_the_group_may_read(
    zookeeper: LocalZooKeeper, owned: Store, root: str
) -> None:
    log = await walked_log(2)
    writer = writer_on(owned, root, "w", Notes())
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING, what="it writes")
        fed(writer, log)
        await at_the_end(owned, root, prefixes(log))
    path = f"{root}/{CLUSTER}/drover/position"

    def as_others() -> None:
        for identity, may_read in (([], False), ([("digest", READER)], True)):
            client = KazooClient(zookeeper.hosts, auth_data=identity)
            client.start()
            try:
                if may_read:
                    assert client.get(path)[0]
                else:
                    with pytest.raises(NoAuthError):
                        client.get(path)
                with pytest.raises(NoAuthError):
                    client.set(path, b"x")
                with pytest.raises(NoAuthError):
                    client.create(f"{root}/{CLUSTER}/admin/x", b"")
            finally:
                client.stop()
                client.close()

    await asyncio.to_thread(as_others)


@pytest.mark.story
async def test_a_tree_that_may_not_be_written_is_said_and_not_hammered(
    zookeeper: LocalZooKeeper, owned: Store, root: str
) -> None:
    log = await walked_log(2)
    writer = writer_on(owned, root, "w", Notes())
    async with running(writer):
        await wait_until(lambda: writer.role is Role.WRITING, what="it writes")
    username, password = STRANGER.split(":")
    stranger, notes = zookeeper_store(zookeeper, username=username, password=password), Notes()
    other = writer_on(stranger, root, "other", notes)
    fed(other, log)
    async with running(other):
        await wait_until(lambda: other.last_error is not None, what="it is said")
        await asyncio.sleep(0)
    assert [type(error) for error in notes.errors] == [StoreDeniedError]
    assert "zookeeper.username" in str(notes.errors[0])
    await stranger.close()


async def test_a_zookeeper_that_is_not_there_is_unavailable_and_named() -> None:
    store = ZooKeeperStore(ZooKeeperOptions("127.0.0.1:1", request_timeout_s=0.3))
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:1"):
        await store.read(["/"])
    await store.close()


def test_with_tls_the_certificate_and_the_hosts_name_are_checked() -> None:
    client = made(ZooKeeperOptions("zk-1:2281", use_tls=True, ca_file="ca.pem", cert_file="c.pem", key_file="k.pem"))
    assert (client.use_ssl, client.verify_certs, client.check_hostname) == (True, True, True)
    assert (client.ca, client.certfile, client.keyfile) == ("ca.pem", "c.pem", "k.pem")
    assert client.keyfile_password == "", "otherwise OpenSSL asks for one on the terminal"
    opened = ZooKeeperOptions("zk-1:2281", use_tls=True, cert_file="c.pem", key_file="k.pem", key_password="hush")  # noqa: S106 - of nobody
    assert made(opened).keyfile_password == "hush"  # noqa: S105 - of nobody


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"root": "drover"}, "root"),
        ({"root": "/"}, "root"),
        ({"root": "/zookeeper/x"}, "root"),
        ({"username": "drover"}, "belong together"),
        ({"cert_file": "c.pem", "use_tls": True}, "belong together"),
        ({"ca_file": "ca.pem"}, "use_tls"),
        ({"readers": ("world:anyone",)}, "credentials"),
        ({"readers": ("ops",), "username": "a", "password": "b"}, "ACL id"),
        ({"listen": "here"}, "listen"),
        ({"session_timeout_ms": 1}, "session_timeout_ms"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ZooKeeperSettings(**settings)  # type: ignore[arg-type]  # what an operator might write


def test_a_tree_that_anybody_could_write_must_be_meant() -> None:
    with pytest.raises(ConfigurationError, match="allow_open_zookeeper"):
        ZooKeeperSettings(hosts="zk-1:2181").options()
    with pytest.raises(ConfigurationError, match=r"zookeeper\.hosts"):
        ZooKeeperSettings(allow_open_zookeeper=True).options()
    assert not ZooKeeperSettings(hosts="zk-1:2181", allow_open_zookeeper=True).options().has_credentials
    assert ZooKeeperSettings(hosts="zk-1:2181", username="a", password=OWNER).options().has_credentials


@pytest.mark.parametrize("cluster", ["controller", "controller_epoch", "brokers", "admin", "config"])
async def test_a_cluster_may_have_the_name_of_a_node_of_kafkas(store: Store, root: str, cluster: str) -> None:
    """One named `controller` was taken for a real cluster's node as soon as it had a tree; no neighbour began again."""
    writer = writer_on(store, root, "w", Notes(), cluster)
    await writer.tree.load()
    await writer.make_anew()
    for name in (cluster, "prod"):
        await Tree(store, root, name, "w").check()


@pytest_asyncio.fixture(loop_scope="session")
async def unclaimed(zookeeper: LocalZooKeeper) -> AsyncIterator[Store]:
    """A store without credentials, whose nodes anybody may write."""
    opened = zookeeper_store(zookeeper)
    yield opened
    await opened.close()


PLAN_OF_A_STRANGER = b'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[4,2,3]}]}'


@pytest.mark.story
async def test_with_credentials_a_tree_that_anybody_could_write_is_claimed_and_its_requests_are_removed(
    zookeeper: LocalZooKeeper, owned: Store, unclaimed: Store, root: str
) -> None:
    log, base = await walked_log(2), f"{root}/{CLUSTER}"
    opened = writer_on(unclaimed, root, "before", Notes())
    async with running(opened):
        fed(opened, log)
        await at_the_end(unclaimed, root, prefixes(log))
    requests = [
        f"{base}{path}" for path in (PLAN, f"{REQUESTS}/request_0000000001", "/admin/reassign_partitions_queue")
    ]
    await unclaimed.write([Create(path, PLAN_OF_A_STRANGER) for path in requests])
    seen = await compare(reading(log), Tree(owned, root, CLUSTER, ""))
    assert (base, "may be written by world:anyone") in {(each.path, each.what) for each in seen.differences}
    tree = Tree(owned, root, CLUSTER, "")
    assert (await tree.exposed_holders())[base] == ("world:anyone",)
    notes = Notes()
    writer = writer_on(owned, root, "w", notes)
    async with running(writer):
        fed(writer, log)
        await wait_until(lambda: writer.role is Role.WRITING, what="it writes")
    assert {root, base, f"{base}/admin", f"{base}/drover/position"} <= set(notes.claimed)
    assert await owned.read(requests) == {}
    everything = await owned.subtree(root)
    assert await owned.exposures(list(everything)) == await tree.exposed_holders() == {}
    assert (await compare(reading(log), Tree(owned, root, CLUSTER, ""))).differences == ()
    with pytest.raises(StoreDeniedError):
        await unclaimed.write([Create(requests[0], PLAN_OF_A_STRANGER)])


@pytest.mark.story
async def test_a_tree_whose_acl_drover_may_not_change_is_refused_and_named(
    zookeeper: LocalZooKeeper, owned: Store, root: str
) -> None:
    """A stranger has planted it, with the mark of a tree of Drover's, before the first start."""
    base = f"{root}/{CLUSTER}"
    mark = b'{"made_by":"drover","cluster":"%s","version":1}' % CLUSTER.encode()

    def plant() -> None:
        client = KazooClient(zookeeper.hosts, auth_data=[("digest", STRANGER)])
        client.start()
        try:
            everybody_but_the_acl = ACL(Permissions.ALL & ~Permissions.ADMIN, Id("world", "anyone"))
            client.create(root, b"", acl=[*CREATOR_ALL_ACL, everybody_but_the_acl])
            client.create(base, mark, acl=[*CREATOR_ALL_ACL, everybody_but_the_acl])
        finally:
            client.stop()
            client.close()

    await asyncio.to_thread(plant)
    notes = Notes()
    writer = writer_on(owned, root, "w", notes)
    async with running(writer):
        await wait_until(lambda: writer.last_error is not None, what="it is said")
    assert [type(error) for error in notes.errors] == [ConfigurationError]
    assert "may be written by" in str(notes.errors[0])
    assert "world:anyone" in str(notes.errors[0])
    assert f"{base}/drover" not in await owned.read([f"{base}/drover"])


async def test_nobody_is_a_stranger_where_there_are_no_credentials(store: Store, root: str) -> None:
    await store.write([Create(root, b"")])
    assert await store.exposures([root, f"{root}/not-there"]) == {}
