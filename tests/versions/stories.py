"""`python -m tests.versions.stories --kafka V`: Drover's stories on one version, with its log on the same cluster.

Prints one line of the table in docs/kafka-versions.md. A story that fails does not end the others.
"""

import argparse
import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from drover.errors import DroverError
from tests.integration.support import Installation, own_installation
from tests.versions import Version, calm_stories, death_stories, tree_stories, unmanaged_stories
from tests.versions.asked import Unlike

Story = Callable[[Installation], Awaitable[None]]
STORY_TIMEOUT_S = 100.0

STORIES: dict[str, Story] = {
    "alter": calm_stories.alter,
    "throttled plan, put back": calm_stories.throttled_plan,
    "rollback with order": calm_stories.rollback,
    "stop": calm_stories.stop,
    "grow": calm_stories.grow,
    "shrink": calm_stories.shrink,
    "order only": calm_stories.order_only,
    "freeze": calm_stories.freeze,
    "many partitions": calm_stories.many,
    "destination dies": death_stories.destination_dies,
    "kept replica dies": death_stories.kept_replica_dies,
    "leaving leader dies": death_stories.leaving_leader_dies,
    "controller changes": death_stories.controller_changes,
    "cancel by others": unmanaged_stories.unmanaged_cancel,
    "re-target by others": unmanaged_stories.unmanaged_retarget,
    "repair": unmanaged_stories.repair,
    "takeover by kill -9": death_stories.takeover,
    "tree in ZooKeeper": tree_stories.tree,
    "log replays": calm_stories.log_replays,
}


@dataclass(frozen=True, slots=True)
class Told:
    """How a story ended: `ok`, what was other than on 4.3.1 and why, or `FAILED` and with what."""

    name: str
    outcome: str
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return self.outcome.startswith("FAILED")


async def tell(made: Installation, name: str) -> Told:
    """Play one story."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(STORY_TIMEOUT_S):
            await STORIES[name](made)
        outcome = "ok"
    except Unlike as unlike:
        outcome = str(unlike)
    except (AssertionError, DroverError, TimeoutError) as problem:
        traceback.print_exc()
        outcome = f"FAILED: {str(problem).splitlines()[0] if str(problem) else type(problem).__name__}"[:160]
    return Told(name, outcome, time.monotonic() - began)


async def play(version: Version, names: Sequence[str]) -> list[Told]:
    """Play stories one after the other on a cluster of this version, which holds the log as well."""
    told: list[Told] = []
    async with own_installation("stories", kafka=version.kafka, zookeeper_mode=version.zookeeper_mode) as made:
        for name in names:
            told.append(await tell(made, name))
            print(f"  {told[-1].seconds:5.1f} s  {name}: {told[-1].outcome}", flush=True)
        print(f"  {(await made.state()).traits}", flush=True)
    return told


def main() -> int:
    """Play and print the row; the exit code is 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions.stories", description="Play Drover's stories.")
    parser.add_argument("--kafka", required=True, help="the version of the cluster")
    parser.add_argument("--zookeeper-mode", action="store_true", help="with its metadata in ZooKeeper (Kafka 3)")
    parser.add_argument("stories", nargs="*", metavar="STORY", help=f"which of {', '.join(STORIES)} (all)")
    options = parser.parse_args()
    version = Version(options.kafka, options.zookeeper_mode)
    print(version, flush=True)
    told = asyncio.run(play(version, options.stories or list(STORIES)))
    print(f"| {version} | {' | '.join(one.outcome for one in told)} | {datetime.now(UTC):%Y-%m-%d} |")
    return 1 if any(one.failed for one in told) else 0


if __name__ == "__main__":
    sys.exit(main())
