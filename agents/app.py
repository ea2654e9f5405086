"""The Faust app of a worker: group membership, the rebalance barrier and one agent per command topic.

It has no table, sink, web server or topic of its own, because the log on aiokafka is the truth.
"""

import asyncio
from typing import Any

import faust
import structlog
from aiokafka.errors import ConsumerStoppedError
from faust.tables.manager import TableManager
from faust.types import TP, TransportT

from drover.agents import alter, blacklist, broker_failed, cancel
from drover.agents.driver import Consumer, Transport, assigned_partitions
from drover.agents.ports import CommandHost
from drover.agents.settings import GroupSettings
from drover.errors import GroupNotLeftError

JOINING_POLL_S = 0.5
# Leaving usually takes well under a second, but up to 12 s in a rebalance that waits for a hanging member.
LEAVE_TIMEOUT_S = 6.0
_log = structlog.get_logger(__name__)


class NoTables(TableManager):
    """A table manager without tables, so that it need not wait for any.

    Faust 0.15 sleeps for a second before it starts them, and a worker joins its group only after that. The rest of
    `on_start` is Faust's own.
    """

    async def on_start(self) -> None:
        """Start at once."""
        await self._update_channels()
        await self.recovery.start()


class DroverApp(faust.App):
    """Faust with our driver; it stores nothing, so that it needs no directory."""

    group_settings: GroupSettings
    host: CommandHost

    def _new_transport(self) -> TransportT:
        transport = Transport(self.conf.broker_consumer, self)
        transport.settings, transport.host = self.group_settings, self.host
        return transport

    def _create_directories(self) -> None:
        """Create no directories, because nothing is stored."""


class CommandGroup:
    """The worker's membership in the group of the command topics; the host's `CommandSource`."""

    def __init__(self, settings: GroupSettings, host: CommandHost) -> None:
        self._settings = settings
        self._topics = settings.connection.topics.commands
        self._host = host
        self._joined = self._stopping = False
        self._app = _new_app(settings, host)
        self._app.on_partitions_revoked.connect(self._revoked)
        self._app.on_rebalance_complete.connect(self._assigned)
        for topic, module in zip(self._topics, (alter, cancel, blacklist, broker_failed), strict=True):
            channel = self._app.topic(
                topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
            )
            self._app.agent(channel, name=module.__name__)(module.Agent(host).__call__)

    async def start(self) -> None:
        """Join the group and return once it has assigned shards; the host must have replayed the log before.

        Raises `LogAccessError` if an ACL to join is missing.
        """
        starting = asyncio.create_task(self._app.start())
        hindered = asyncio.create_task(self._raise_what_hinders())
        try:
            await asyncio.wait((starting, hindered), return_when=asyncio.FIRST_COMPLETED)
            if hindered.done():
                await hindered
            await starting
        finally:
            starting.cancel()
            hindered.cancel()

    async def wait_until_ended(self) -> None:
        """Wait until Faust has stopped, on request or by a fault of its own."""
        await self._app.wait_until_stopped()

    async def stop(self) -> None:
        """Leave the group.

        A stop that fails half way does no harm: the shards were given up before, and the group assigns them to others
        when the session is over.

        Raises `GroupNotLeftError` after 6 s. Faust's thread then still runs, and Python would wait for it at exit.
        """
        self._stopping = True
        # In a task of its own, because Faust may raise a `GeneratorExit`, which would close our caller silently.
        stopping = asyncio.create_task(self._app.stop())
        await asyncio.wait((stopping,), timeout=LEAVE_TIMEOUT_S)
        if not stopping.done():
            raise GroupNotLeftError(f"the group was not left within {LEAVE_TIMEOUT_S:.0f} s")
        error = asyncio.CancelledError() if stopping.cancelled() else stopping.exception()
        if error is not None:
            _log.warning("the group was not left in order", error=repr(error), exc_info=error)

    @property
    def generation(self) -> int:
        """The group generation of the present assignment."""
        return int(self._app.consumer_generation_id)

    def hold(self, topic_index: int, partition: int) -> None:
        """Read no more of this partition for now."""
        # Not with pause_partitions, which drops fetched records. It needs a faust TP, which that of a message is not.
        self._app.consumer.on_buffer_full(TP(self._topics[topic_index], partition))

    def release(self, topic_index: int, partition: int) -> None:
        """Read on."""
        self._app.consumer.on_buffer_drop(TP(self._topics[topic_index], partition))

    async def request_rejoin(self) -> None:
        """Join the group again; does nothing while it is being left."""
        consumer = self._app.consumer
        assert isinstance(consumer, Consumer), "the app was not made with our driver"
        try:
            await consumer.request_rejoin()
        except ConsumerStoppedError:
            if not self._stopping:
                raise

    async def _raise_what_hinders(self) -> None:
        """Wait until the group has assigned shards, or we stop; raise the reason if it cannot."""
        while self._is_joining():
            await asyncio.sleep(JOINING_POLL_S)
            consumer = self._app.consumer
            assert isinstance(consumer, Consumer), "the app was not made with our driver"
            await consumer.raise_group_fault()

    def _is_joining(self) -> bool:
        return not (self._joined or self._stopping)

    async def _revoked(self, *_arguments: Any, **_more: Any) -> None:
        try:
            self._host.partitions_revoked()
        except Exception as error:  # noqa: BLE001 - Faust would crash half way and hang
            self._host.fail("letting go of revoked shards failed", error)

    async def _assigned(self, *_arguments: Any, **_more: Any) -> None:
        self._joined = True
        try:
            partitions = assigned_partitions(self._app.consumer.assignment(), self._topics)
            await self._host.partitions_assigned(partitions, self.generation)
        except Exception as error:  # noqa: BLE001 - Faust would crash half way and hang
            self._host.fail("the rebalance barrier failed", error)


def _new_app(settings: GroupSettings, host: CommandHost) -> DroverApp:
    app = DroverApp(
        settings.group,
        broker=[f"kafka://{address}" for address in settings.connection.bootstrap.split(",")],
        store="memory://",
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
        TableManager=NoTables,
        broker_session_timeout=settings.session_timeout_s,
        broker_heartbeat_interval=settings.heartbeat_interval_s,
        broker_rebalance_timeout=settings.rebalance_timeout_s,
        broker_request_timeout=settings.request_timeout_s,
        broker_max_poll_interval=settings.max_poll_interval_s,
        broker_max_poll_records=settings.max_poll_records,
        broker_commit_interval=1.0,
        stream_wait_empty=True,
        stream_buffer_maxsize=256,
        agent_supervisor="mode.supervisors:CrashingSupervisor",
    )
    app.group_settings, app.host = settings, host
    # Faust's producer is not used, because the worker has its own.
    app.boot_strategy.enable_kafka_producer = False
    return app
