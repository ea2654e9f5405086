"""The agent of `<prefix>.cancel`, whose commands end moves, freeze and unfreeze (KIP-236)."""

from faust.types import StreamT

from drover.agents.intake import Intake
from drover.agents.ports import CommandHost

TOPIC_INDEX = 1


class Agent:
    """Decodes the records of `<prefix>.cancel` and hands them over."""

    def __init__(self, host: CommandHost) -> None:
        self._intake = Intake(TOPIC_INDEX, host)

    async def __call__(self, stream: StreamT[None]) -> None:
        """Serve the stream until the worker stops."""
        await self._intake.run(stream)
