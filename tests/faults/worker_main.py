"""The command `drover` with a wall clock that is wrong.

usage: python -m tests.faults.worker_main OFFSET_S worker ...
"""

import sys

from drover.agents import clock
from drover.reconcile.messages import Moment


def set_clock_wrong(offset_ms: int) -> None:
    """Shift the wall clock of this process; must come before the modules that read it are imported."""
    right = clock.now

    def wrong() -> Moment:
        moment = right()
        return Moment(moment.wall_ms + offset_ms, moment.monotonic_ms)

    clock.now = wrong


if __name__ == "__main__":
    set_clock_wrong(int(sys.argv.pop(1)) * 1000)
    from drover.cli.main import main

    main()
