"""`drover throttles`: every throttle that is set in a cluster, and who set it."""

import asyncio
from dataclasses import dataclass

import click
import msgspec

from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.log_state import read_state
from drover.cli.model_source import open_driver
from drover.cli.output import amount, console, output_option, plural, print_document, say, table, timestamp
from drover.client.views.found_throttles import FoundEntries, FoundRates, found_entries, found_rates
from drover.settings.settings import Settings
from drover.state.plans import ClusterThrottle

LOOK_TIMEOUT_MS = 10_000
_SHOWN_ENTRIES = 6


@dataclass(frozen=True, slots=True)
class Throttles:
    """The throttles of a cluster; `of_cluster` is what a command has set for plans without one, None if none has."""

    of_cluster: ClusterThrottle | None
    rates: tuple[FoundRates, ...]
    entries: tuple[FoundEntries, ...]


@click.command()
@output_option
@common_options
@pass_invocation
def throttles(invocation: Invocation, output: str) -> None:
    """Show every throttle that is set in the cluster: Drover's, other people's, and strays that a tool left behind.

    Rates come from the brokers' configs, and throttled replicas from the topics'. The log and the reassignments under
    way tell who set them.
    """
    show_throttles(invocation, output)


def show_throttles(invocation: Invocation, output: str) -> None:
    """Read the throttles of the cluster and print them."""
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    found = look_at_throttles(settings, cluster)
    if output != "table":
        rows = [row.document() for row in found.rates]
        document = {
            "cluster": cluster,
            "throttle": None if found.of_cluster is None else msgspec.to_builtins(found.of_cluster),
            "brokers": rows,
            "topics": [row.document() for row in found.entries],
        }
        print_document(document, rows, output)
        return
    if found.of_cluster is not None:
        known = found.of_cluster
        say(
            f"Plans without a throttle of their own: {amount(known.bytes_per_second)}/s per broker, set by {known.by}, "
            f"{timestamp(known.since_ms)}: {known.reason}"
        )
    if found.rates:
        cells = [(str(row.broker), _rate(row.leader), _rate(row.follower), row.whose, row.says) for row in found.rates]
        console().print(table(("broker", "out", "in", "whose", ""), cells, right=("broker", "out", "in")))
    if found.entries:
        told = [(row.topic, _some(row.leader), _some(row.follower), row.whose, row.says) for row in found.entries]
        console().print(table(("topic", "leaders", "followers", "whose", ""), told))
    if not found.rates and not found.entries:
        say("No broker has a throttle, and no topic has throttled replicas.")
    strays = sum(row.whose == "stray" for row in found.rates) + sum(row.whose == "stray" for row in found.entries)
    if strays:
        say(f"{plural(strays, 'stray')}: `drover throttle restore` deletes them.", err=True)


def look_at_throttles(settings: Settings, cluster: str) -> Throttles:
    """Read the log and the cluster; raises `ClusterError` or `ConfigurationError`."""
    return asyncio.run(find_throttles(settings, cluster))


async def find_throttles(settings: Settings, cluster: str) -> Throttles:
    """Read the cluster and then the log; raises `ClusterError`, `LogUnavailableError` or `ConfigurationError`."""
    async with open_driver(settings, cluster, LOOK_TIMEOUT_MS) as driver:
        survey = await driver.survey()
        rates = await driver.broker_rates(survey.live_brokers)
        lists = await driver.throttled_replicas({key.topic for key in survey.partitions})
        moves = (await driver.list_moves()).moves
    # The log is read last: what Drover has set meanwhile is known to be its own.
    state = await read_state(settings.log.connection(), cluster)
    return Throttles(
        state.cluster_throttle,
        tuple(found_rates(state, rates, moves)),
        tuple(found_entries(state, lists, moves)),
    )


def _rate(rate: int | None) -> str:
    return "-" if rate is None else f"{amount(rate)}/s"


def _some(entries: tuple[str, ...]) -> str:
    more = len(entries) - _SHOWN_ENTRIES
    return " ".join(entries[:_SHOWN_ENTRIES]) + (f" and {more:,} more" if more > 0 else "")
