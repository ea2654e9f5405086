"""`drover throttles`: the throttles that stand in a cluster, and whose they are."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import amount, console, output_option, plural, print_document, say, table, timestamp

if TYPE_CHECKING:
    from drover.client.views.found_throttles import FoundEntries, FoundRates
    from drover.plans.state import ClusterThrottle
    from drover.runtime.settings import Settings

LOOK_TIMEOUT_MS = 10_000
_SHOWN_ENTRIES = 6


@dataclass(frozen=True, slots=True)
class Throttles:
    """What a look at a cluster and at its log has shown; `of_cluster` is the throttle that a command has set."""

    of_cluster: "ClusterThrottle | None"
    rates: "tuple[FoundRates, ...]"
    entries: "tuple[FoundEntries, ...]"


@click.command()
@output_option
@common_options
@pass_invocation
def throttles(invocation: Invocation, output: str) -> None:
    """Show every throttle that stands in the cluster: ours, theirs, and strays that a tool has left.

    Rates are read from the brokers and entries from the topics; whose they are from the log and from what moves.
    """
    show_throttles(invocation, output)


def show_throttles(invocation: Invocation, output: str) -> None:
    """Look at the cluster and print what stands there."""
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    found = look_at_throttles(settings, cluster)
    if output != "table":
        import msgspec  # noqa: PLC0415 - not for a table

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


def look_at_throttles(settings: "Settings", cluster: str) -> Throttles:
    """Read the log and the cluster; raises `ClusterError` or `ConfigurationError`."""
    return asyncio.run(_look(settings, cluster))


async def _look(settings: "Settings", cluster: str) -> Throttles:
    from drover.cli.model_source import open_driver  # noqa: PLC0415 - the Kafka client costs start-up time
    from drover.client.history import fold_shards  # noqa: PLC0415 - the same
    from drover.client.views.found_throttles import found_entries, found_rates  # noqa: PLC0415 - the same
    from drover.state.cluster import ClusterState  # noqa: PLC0415 - the same

    async with open_driver(settings, cluster, LOOK_TIMEOUT_MS) as driver:
        survey = await driver.survey()
        rates = await driver.broker_rates(survey.live_brokers)
        lists = await driver.throttled_replicas({key.topic for key in survey.partitions})
        moves = (await driver.list_moves()).moves
    # The log is read last: what Drover has set meanwhile is known to be its own.
    (fold,) = (await fold_shards(settings.log.connection(), cluster)).folds.values()
    state = fold.state.clusters.get(cluster) or ClusterState(cluster)
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
