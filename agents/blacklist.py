"""The agent of `<prefix>.blacklist`, whose commands name the brokers that should not lead (KIP-491)."""

from faust.types import StreamT

from drover.agents.intake import Intake
from drover.agents.ports import CommandHost

TOPIC_INDEX = 2


class Agent:
    """Decodes the records of `<prefix>.blacklist` and hands them over."""

    def __init__(self, host: CommandHost) -> None:
        self._intake = Intake(TOPIC_INDEX, host)

    async def __call__(self, stream: StreamT[None]) -> None:
        """Serve the stream until the worker stops."""
        await self._intake.run(stream)
