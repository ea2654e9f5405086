"""`drover completion`: the script of a shell's completion, and the names that it completes."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import click
from click.shell_completion import get_completion_class

from drover.cli.exits import Failure
from drover.cli.help import drover_command
from drover.cli.invocation import Invocation
from drover.cli.model import open_driver
from drover.cli.output import say
from drover.client.history import fold_cluster
from drover.errors import DroverError
from drover.settings.settings import Settings
from drover.time_limits import time_limit

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_DROVER_COMPLETE"
# A person waits for the names after pressing the key.
TIME_LIMIT_S = 2.0


@drover_command(example='eval "$(drover completion bash)"      # in ~/.bashrc')
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion of commands, options and names for a shell.

    Clusters come from the settings, plans from the log, topics and brokers from the cluster. Where those do not answer
    within two seconds, nothing is completed. For fish: drover completion fish > ~/.config/fish/completions/drover.fish
    """
    script = get_completion_class(shell)
    if script is None:
        raise Failure(f"there is no completion for {shell}")
    say(script(context.find_root().command, {}, "drover", VARIABLE).source())


async def _plans(settings: Settings, cluster: str) -> list[str]:
    return [*(await fold_cluster(settings.log.connection(), cluster)).plans]


async def _topics(settings: Settings, cluster: str) -> list[str]:
    async with open_driver(settings, cluster, round(TIME_LIMIT_S * 1000)) as driver:
        return sorted({key.topic for key in (await driver.survey()).partitions})


async def _brokers(settings: Settings, cluster: str) -> list[str]:
    async with open_driver(settings, cluster, round(TIME_LIMIT_S * 1000)) as driver:
        return [str(broker) for broker in sorted((await driver.survey()).live_brokers)]


_READ: dict[str, Callable[[Settings, str], Coroutine[Any, Any, list[str]]]] = {
    "plans": _plans,
    "topics": _topics,
    "brokers": _brokers,
}


def names(kind: str, context: click.Context, incomplete: str) -> list[str]:
    """Return the clusters, plans, topics or brokers that begin with a text; none where they cannot be read in time."""
    invocation = context.find_object(Invocation) or Invocation()
    try:
        settings = invocation.settings()
        if kind == "clusters":
            read = sorted(settings.clusters)
        else:
            read = asyncio.run(_in_time(_READ[kind](settings, invocation.cluster_of(settings))))
    except (DroverError, TimeoutError):
        return []
    return [name for name in read if name.startswith(incomplete)]


async def _in_time(reading: Coroutine[Any, Any, list[str]]) -> list[str]:
    async with time_limit(TIME_LIMIT_S):
        return await reading
