"""The overrides of Faust's aiokafka driver: the consumer, its positions after a rebalance, and the end of its calls.

* The assignor is aiokafka's range assignor, which assigns the same shards of all four topics to one member. Faust's own
  round robin scatters them with four members.
* Positions come from the log, never from group offsets (R4), and are set only where Faust asks for them, because within
  a generation Faust drops records that it reads again.
* Records pass through Faust in batches, because a message costs Faust as much time as a decision costs Drover.
"""

import asyncio
import contextlib
import types
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import Any, cast

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import ConsumerStoppedError, InvalidSessionTimeoutError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, TransportT
from mode.services import WaitResults
from mode.utils.futures import maybe_async

from drover.agents.ports import CommandHost
from drover.agents.records import Delivered, Records, delivered, in_groups
from drover.agents.settings import GroupSettings
from drover.errors import ConfigurationError
from drover.journal.access import AUTHORIZATION_ERRORS, unreachable
from drover.journal.consumer import new_consumer


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """Makes the consumer of the worker's group with our settings; Faust hard-codes assignor and fetch wait."""

    def _create_worker_consumer(self, _transport: TransportT) -> AIOKafkaConsumer:
        self._assignor = RangePartitionAssignor
        return new_group_consumer(cast("Consumer", self.consumer).settings)

    async def call_thread(self, fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function in the consumer's own thread. Raises `ConsumerStoppedError` if the thread ends meanwhile.

        mode would pass on the `GeneratorExit` with which Python closes the thread's coroutines. In a task that awaits
        the result, it would close every coroutine up to the worker's first one, past all supervisors.
        """
        return await super().call_thread(closed_as_fault(fun), *args, **kwargs)

    async def seek_to_cursors(self, positions: Mapping[int, tuple[int, ...]], topics: tuple[str, ...]) -> dict[TP, int]:
        """Set every assigned partition to its position; runs in the consumer's own thread."""
        consumer = self._ensure_consumer()
        sought: dict[TP, int] = {}
        for partition in consumer.assignment():
            if partition.topic in topics:
                offset = positions[partition.partition][topics.index(partition.topic)]
                consumer.seek(partition, offset)
                sought[TP(partition.topic, partition.partition)] = offset
        return sought

    async def raise_group_fault(self) -> None:
        """Raise the error that keeps us out of the group; runs in the consumer's own thread."""
        # aiokafka raises it only in a poll, and Faust does not poll before shards are assigned.
        coordinator = None if self._consumer is None else self._consumer._coordinator  # noqa: SLF001 - see above
        if coordinator is None:
            return  # not started yet
        settings = cast("Consumer", self.consumer).settings
        try:
            coordinator.check_errors()
        except AUTHORIZATION_ERRORS as error:
            raise unreachable(settings.connection, error) from error
        except InvalidSessionTimeoutError as error:
            raise ConfigurationError(
                f"the log's Kafka refuses worker.session_timeout_ms = {_milliseconds(settings.session_timeout_s)}: its "
                "brokers accept values from group.min.session.timeout.ms (default 6000) to "
                "group.max.session.timeout.ms (default 1800000)"
            ) from error

    async def rejoin_group(self) -> None:
        """Request a rebalance of the group; runs in the consumer's own thread."""
        # aiokafka has no public way to rejoin without giving up the subscription.
        self._ensure_consumer()._coordinator.request_rejoin()  # noqa: SLF001 - see above


class Consumer(driver.Consumer):
    """A consumer whose positions come from the log."""

    settings: GroupSettings
    host: CommandHost

    def _new_consumer_thread(self) -> ConsumerThread:
        transport = cast("Transport", self.transport)
        self.settings, self.host = transport.settings, transport.host
        self._seeking = asyncio.Lock()
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek to the log's cursors and report them to the host, under a lock, because Faust may call this twice."""
        async with self._seeking:
            thread = cast("ConsumerThread", self._thread)
            positions = self.host.positions()
            topics = self.settings.connection.topics.commands
            sought: dict[TP, int] = await thread.call_thread(thread.seek_to_cursors, positions, topics)
            shards = {partition.partition for partition in sought}
            self.host.positions_set({shard: positions[shard] for shard in shards})
            self._buffered_partitions.clear()
            return sought

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> dict[TP, list[Records]]:  # noqa: ASYNC109 - Faust's signature
        fetched = await super()._getmany(active_partitions, timeout)
        return {partition: list(in_groups(records)) for partition, records in fetched.items()}

    def _to_message(self, tp: TP, record: Records) -> Delivered:
        return delivered(tp, record, self.app.consumer_generation_id)

    async def wait_first(self, *waiting: Any, timeout: Any = None) -> WaitResults:  # noqa: ASYNC109 - mode's signature
        """Wait for the first of some coroutines; without tasks if the first one need not wait.

        Faust calls this for each message, with the delivery and the end of the flow. Its four tasks per call would take
        a third of a worker's time, although a delivery waits only while an agent's buffer is full.
        """
        if not all(map(asyncio.iscoroutine, waiting)):
            return await super().wait_first(*waiting, timeout=timeout)
        first, *others = waiting
        with contextlib.ExitStack() as unneeded:
            for other in others:
                unneeded.callback(other.close)
            try:
                blocker = first.send(None)
            except StopIteration as end:
                return WaitResults([first], [end.value], stopped=False)
            unneeded.pop_all()
        return await super().wait_first(_rest_of(first, blocker), *others, timeout=timeout)

    async def raise_group_fault(self) -> None:
        """Raise the error that keeps us out of the group, such as a missing ACL."""
        thread = cast("ConsumerThread", self._thread)
        await thread.call_thread(thread.raise_group_fault)

    async def request_rejoin(self) -> None:
        """Join the group again."""
        thread = cast("ConsumerThread", self._thread)
        await thread.call_thread(thread.rejoin_group)


class Transport(driver.Transport):
    """Passes settings and host to the consumer that it creates."""

    Consumer = Consumer
    settings: GroupSettings
    host: CommandHost


def new_group_consumer(settings: GroupSettings) -> AIOKafkaConsumer:
    """Create the consumer of the command topics."""
    return new_consumer(
        client_id=settings.client_id,
        group_id=settings.group,
        group_instance_id=settings.instance_id,
        partition_assignment_strategy=[RangePartitionAssignor],
        enable_auto_commit=False,
        # Only until the barrier has set the position; the host checks that every cursor is within its topic.
        auto_offset_reset="earliest",
        # Commands of aborted transactions do not count.
        isolation_level="read_committed",
        fetch_max_wait_ms=settings.fetch_wait_ms,
        max_poll_records=settings.max_poll_records,
        max_poll_interval_ms=_milliseconds(settings.max_poll_interval_s),
        max_partition_fetch_bytes=4 * 1024 * 1024,
        request_timeout_ms=_milliseconds(settings.request_timeout_s),
        session_timeout_ms=_milliseconds(settings.session_timeout_s),
        rebalance_timeout_ms=_milliseconds(settings.rebalance_timeout_s),
        heartbeat_interval_ms=_milliseconds(settings.heartbeat_interval_s),
        metadata_max_age_ms=30_000,
        **settings.connection.client_options,
    )


async def _rest_of(begun: Coroutine[Any, Any, Any], blocker: Any) -> Any:
    """Continue a coroutine that waits for `blocker`, in the task that awaits this one."""
    return await _resumed(begun, blocker)


@types.coroutine
def _resumed(begun: Coroutine[Any, Any, Any], blocker: Any) -> Generator[Any, Any, Any]:
    try:
        yield blocker
    except asyncio.CancelledError as cancelled:
        begun.throw(cancelled)
        raise
    return (yield from begun)


def closed_as_fault(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a coroutine function for any function; if closed early, it raises a fault instead of `GeneratorExit`."""

    async def guarded(*arguments: Any, **more: Any) -> Any:
        try:
            return await maybe_async(function(*arguments, **more))
        except GeneratorExit as end:
            raise ConsumerStoppedError from end

    return guarded


def assigned_partitions(assignment: set[TopicPartition], topics: tuple[str, ...]) -> dict[str, list[int]]:
    """Group an assignment by command topic, with every topic and ascending partitions."""
    return {
        topic: sorted(partition.partition for partition in assignment if partition.topic == topic) for topic in topics
    }


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
