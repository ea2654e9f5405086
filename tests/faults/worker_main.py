"""The command `drover` with a wall clock that is wrong.

usage: python -m tests.faults.worker_main OFFSET_S worker ...
"""

import sys

from drover.agents.clock import WALL_MS, system_wall_ms


def set_clock_wrong(offset_ms: int) -> None:
    """Shift the wall clock of this process."""
    WALL_MS.set(lambda: system_wall_ms() + offset_ms)


if __name__ == "__main__":
    set_clock_wrong(int(sys.argv.pop(1)) * 1000)
    from drover.cli.main import main

    main()
