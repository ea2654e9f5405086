"""The command `drover` that kills itself between a reorder and the first election.

usage: python -m tests.integration.dying_elector worker ...
"""

import os
import signal
from collections.abc import Collection, Mapping

from drover.cluster.kafka import KafkaDriver
from drover.events.partitions import TopicPartition
from drover.facts import CallResult


def die_when_electing() -> None:
    """Let this process be killed when the intent of an election is durable and its call is about to be made."""

    async def dying(_self: KafkaDriver, _partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, CallResult]:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("it is dead")

    KafkaDriver.elect_leaders = dying  # type: ignore[assignment,method-assign]  # this process is here to be killed


if __name__ == "__main__":
    die_when_electing()
    from drover.cli.main import main

    main()
