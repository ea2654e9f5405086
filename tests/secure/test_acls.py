"""Each ACL of the table is needed: taken away, an operation of Drover's fails for want of it; given back, it works."""

import asyncio
import re
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from drover.client.acls import Need, Part, Place, needs
from drover.cluster.acls import Acl, create_acls
from drover.cluster.topics import TopicSpec, create_topics
from drover.events.topics import TopicNames
from drover.journal import topics as own_topics
from drover.journal.connection import LogConnection
from drover.journal.producer import LogProducer
from tests.architecture.repository import ROOT
from tests.secure.probes import GROUP, SHARDS, Prober, commit_an_offset, refusal
from tests.secure.support import SecureCluster

NAMES = TopicNames("acl")
NEEDS = needs(NAMES, GROUP)
# One user for each part and place, so that nothing is allowed by what another one needs.
SETS = sorted({(need.part, need.place) for need in NEEDS})
MOVED_TOPIC = "of-the-managed-cluster"
SPREADS_WITHIN_S = 60.0


def user_of(part: Part, place: Place) -> str:
    return f"{part}-{place}"


EACH_ACL = [(need.part, need.place, acl) for need in NEEDS for acl in need.acls(user_of(need.part, need.place))]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def probers(secure: SecureCluster) -> AsyncIterator[dict[tuple[Part, Place], Prober]]:
    """Users that may do what the table says, and topics made by the one that may make them."""
    await secure.add_users([user_of(*one) for one in SETS])
    await create_acls(secure.local.bootstrap, [acl for _, _, acl in EACH_ACL], secure.local.admin_options)
    spec = TopicSpec(MOVED_TOPIC, 1, 3, assignments={0: (1, 2, 3)})
    await create_topics(secure.local.bootstrap, [spec], secure.local.admin_options)
    made = {}
    for part, place in SETS:
        connection = LogConnection(secure.local.bootstrap, NAMES, secure.options_of(user_of(part, place)))
        made[part, place] = Prober(part, place, connection, MOVED_TOPIC)
    setup = made[Part.SETUP, Place.LOG].connection
    await own_topics.init(setup, SHARDS)
    assert await own_topics.check(setup) == ()
    producer = LogProducer(secure.local.connection(NAMES), "something-to-read")
    await producer.start()
    try:
        await asyncio.gather(
            *(
                producer.send(topic, b"x", key=b"x")
                for topic in (*NAMES.commands, NAMES.progress, NAMES.dead_letters, NAMES.snapshots)
            )
        )
    finally:
        await producer.close()
    await commit_an_offset(secure.local.connection(NAMES), MOVED_TOPIC)
    yield made


async def until(prober: Prober, acl: Acl, *, allowed: bool) -> str:
    """Do the operation until it is answered so: brokers hear of a changed ACL a moment later."""
    deadline = time.monotonic() + SPREADS_WITHIN_S
    while True:
        said = await refusal(prober, acl)
        if (said is None) == allowed:
            return said or ""
        assert time.monotonic() < deadline, f"{acl}: {said or 'was allowed without it'}"


@pytest.mark.cluster
@pytest.mark.story
@pytest.mark.parametrize(
    ("part", "place", "acl"),
    EACH_ACL,
    ids=[
        f"{part}-{place}-{acl.resource.name.lower()}-{acl.name}-{acl.operation.title}" for part, place, acl in EACH_ACL
    ],
)
async def test_without_this_acl_an_operation_fails_and_with_it_it_works(
    secure: SecureCluster, probers: dict[tuple[Part, Place], Prober], part: Part, place: Place, acl: Acl
) -> None:
    prober = probers[part, place]
    await secure.remove_acl(acl)
    try:
        assert await until(prober, acl, allowed=False)
    finally:
        await create_acls(secure.local.bootstrap, [acl], secure.local.admin_options)
    await until(prober, acl, allowed=True)


def test_no_acl_is_given_twice_and_every_topic_is_thought_of() -> None:
    assert len(set(EACH_ACL)) == len(EACH_ACL)
    for part in (Part.WORKER, Part.SETUP):
        named = {name for need in NEEDS if (need.part, need.place) == (part, Place.LOG) for name in need.names}
        assert named - {GROUP} == {rule.name for rule in own_topics.rules(NAMES, SHARDS)}


def test_the_acls_in_the_documentation_are_those_of_the_table() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    written = re.findall(r"^kafka-acls .*$", text, flags=re.MULTILINE)
    assert written == [_documented(need) for need in needs(TopicNames(), "drover-worker")]


def _documented(need: Need) -> str:
    users = {Part.WORKER: "drover", Part.OPERATOR: "operator", Part.SETUP: "setup"}
    return need.command("log:9093" if need.place is Place.LOG else "prod:9093", users[need.part])
