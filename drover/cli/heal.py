"""`drover heal`: what is done about brokers that stay away (KIP-46)."""

import asyncio
import time
from typing import Any, Literal

import click

from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import amount, console, output_option, plural, print_document, say, table, timestamp
from drover.cli.proposal_view import print_directories
from drover.cli.simple import send_one
from drover.cli.submitting import connect, make_request, write_options
from drover.client.views.heal_rows import OutageRow, heal_document, heal_lines, outage_rows, plan_document, plan_rows
from drover.client.views.present import clusters_of
from drover.client.watching import look
from drover.cluster_model import Knowledge, model_of
from drover.errors import ConfigurationError
from drover.events.commands import HealCommand
from drover.events.healing import HealingLimits
from drover.inventory import Inventory
from drover.planner.disks import closed_brokers
from drover.reconcile.healing.patient import patient_of
from drover.reconcile.healing.planning import HealPlan, plan_heal
from drover.settings.settings import Settings
from drover.state.cluster import ClusterState
from drover.unreachable import unreachable_in_words, unreachable_sentence

LOOK_TIMEOUT_MS = 60_000
number_argument = click.argument("number", metavar="N", type=click.IntRange(min=0, max=2**31 - 1))


@click.group()
def heal() -> None:
    """Show and decide what is done about brokers that stay away."""


@heal.command()
@output_option
@common_options
@pass_invocation
def status(invocation: Invocation, output: str) -> None:
    """Show who is away, since when, and what is done about it; read from the log."""
    settings = invocation.settings()
    states = _states(settings, invocation.cluster_wanted(settings))
    rows = [row for state in states for row in outage_rows(state)]
    if output != "table":
        now_ms = round(time.time() * 1000)
        documents = [heal_document(state, now_ms) for state in states]
        print_document({"clusters": documents}, [row.document() for row in rows], output)
        return
    screen = console()
    if rows:
        cells = [(row.cluster, str(row.broker), timestamp(row.since_ms), _heals_at(row), row.state) for row in rows]
        screen.print(table(("cluster", "broker", "away since", "heals at", "state"), cells, right=("broker",)))
    elif not states or any(state.limits.healing is not None for state in states):
        say("No broker is known to be away.")
    for line in (line for state in states for line in heal_lines(state)):
        say(line)


@heal.command()
@click.argument("number", metavar="[N]", type=click.IntRange(min=0, max=2**31 - 1), required=False)
@output_option
@common_options
@pass_invocation
def plan(invocation: Invocation, number: int | None, output: str) -> None:
    """Show what would be done now about the brokers that are away, or about broker N; nothing is written.

    The cluster is looked at once. What -o json prints can be given to `drover alter`.
    """
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    states = {state.name: state for state in _states(settings, cluster)}
    state = states.get(cluster) or ClusterState(cluster)
    limits = state.limits.healing or HealingLimits()
    inventory = asyncio.run(_inventory(settings, cluster))
    brokers, made = _plan_now(inventory, state, number, limits.disk_limit_percent)
    unreachable = inventory.standings.unreachable
    chunk = limits.chunk_partitions
    print_directories(closed_brokers(model_of(inventory, Knowledge())), err=True)
    if output != "table":
        document = plan_document(made, brokers, chunk)
        print_document(document, document["partitions"], output)
        return
    if unreachable:
        say(f"{unreachable_sentence(unreachable)} Nothing of it is healed.")
    if not brokers:
        say("Every broker that replica lists name is alive.")
        return
    rows = plan_rows(made, chunk)
    if rows:
        console().print(table(("chunk", "partition", "now", "then", "bytes"), rows, right=("chunk", "bytes")))
    copied = amount(sum(one.copied_bytes for one in made.assignments))
    names = ", ".join(map(str, brokers))
    say(f"Broker {names}: {plural(len(rows), 'partition')} in chunks of {chunk}, {copied} to copy.")
    for one in made.left:
        say(f"{one.topic}:{one.partition} is left, {one.why.value}: {one.detail}")


@heal.command()
@number_argument
@write_options
@pass_invocation
def start(invocation: Invocation, number: int, **options: Any) -> None:
    """Heal broker N now, without waiting for its time."""
    _send(invocation, "start", number, options)


@heal.command()
@number_argument
@write_options
@pass_invocation
def skip(invocation: Invocation, number: int, **options: Any) -> None:
    """Leave broker N alone until it is back."""
    _send(invocation, "skip", number, options)


@heal.command()
@click.argument("number", metavar="[N]", type=click.IntRange(min=0, max=2**31 - 1), required=False)
@click.option("--rollback", is_flag=True, help="Take the running chunk back as well.")
@write_options
@pass_invocation
def stop(invocation: Invocation, number: int | None, *, rollback: bool, **options: Any) -> None:
    """Begin no further chunk, of broker N or of any."""
    _send(invocation, "stop", number, options, rollback=rollback)


def _send(
    invocation: Invocation,
    action: Literal["start", "skip", "stop"],
    number: int | None,
    options: dict[str, Any],
    *,
    rollback: bool = False,
) -> None:
    connection, cluster = connect(invocation)
    request = make_request(invocation, f"heal-{action}", cluster, options)
    send_one(connection, HealCommand(**request.envelope, action=action, broker=number, rollback=rollback), request)


def _states(settings: Settings, cluster: str | None) -> list[ClusterState]:
    view = asyncio.run(look(settings.log.connection(), cluster))
    return [state for state, _, _ in clusters_of(view, cluster)]


def _heals_at(row: OutageRow) -> str:
    if row.healed_ms is not None:
        return f"done {timestamp(row.healed_ms)}"
    return "-" if row.heals_at_ms is None else timestamp(row.heals_at_ms)


async def _inventory(settings: Settings, cluster: str) -> Inventory:
    from drover.cluster.kafka import KafkaDriver  # noqa: PLC0415 - the Kafka client costs start-up time

    if cluster not in settings.clusters:
        raise ConfigurationError(f"cluster {cluster} is not configured: add [clusters.{cluster}] to the settings file")
    found = settings.clusters[cluster]
    options = found.security.client_options(f"clusters.{cluster}.security")
    driver = KafkaDriver(cluster, found.bootstrap, options, call_timeout_ms=LOOK_TIMEOUT_MS)
    try:
        return await driver.inventory()
    finally:
        await driver.close()


def _plan_now(
    inventory: Inventory, state: ClusterState, number: int | None, disk_limit_percent: int
) -> tuple[tuple[int, ...], HealPlan]:
    """Plan as the owner would; broker N counts as dead, alive or not.

    Raises `ConfigurationError` for one that is neither in the cluster nor in a replica list: it is mistyped.
    """
    assigned = {broker for facts in inventory.partitions.values() for broker in facts.replicas}
    if number is not None and number not in assigned and number not in inventory.brokers:
        known = ", ".join(map(str, sorted({*assigned, *inventory.brokers})))
        raise ConfigurationError(f"there is no broker {number}; there are {known}")
    standings = inventory.standings
    if number in standings.unreachable:
        raise ConfigurationError(unreachable_in_words((number,)))
    dead = frozenset(standings.dead(assigned))
    due, away = (tuple(sorted(dead)), dead) if number is None else ((number,), dead | {number})
    return due, plan_heal(inventory, patient_of(state, due, away), disk_limit_percent)
