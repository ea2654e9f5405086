"""The agent of `<prefix>.broker-failed`, whose commands report brokers that failed or returned (KIP-46)."""

from faust.types import StreamT

from drover.agents.intake import Intake
from drover.agents.ports import CommandHost

TOPIC_INDEX = 3


class Agent:
    """Decodes the records of `<prefix>.broker-failed` and hands them over."""

    def __init__(self, host: CommandHost) -> None:
        self._intake = Intake(TOPIC_INDEX, host)

    async def __call__(self, stream: StreamT[None]) -> None:
        """Serve the stream until the worker stops."""
        await self._intake.run(stream)
