"""The command `drover` that kills itself beside the first command it sends because of a node.

usage: python -m tests.integration.dying_projector before|after project ...
"""

import os
import signal
import sys

from drover.events.commands import AnyCommand
from drover.service.command_sender import CommandSender


def die_when_sending(point: str) -> None:
    """Let this process be killed between seeing a node and producing its command, or right after that."""
    send = CommandSender.send

    async def dying(self: CommandSender, command: AnyCommand) -> None:
        if point == "after":
            await send(self, command)
        os.kill(os.getpid(), signal.SIGKILL)

    CommandSender.send = dying  # type: ignore[method-assign]  # this process is here to be killed


if __name__ == "__main__":
    die_when_sending(sys.argv.pop(1))
    from drover.cli.main import main

    main()
