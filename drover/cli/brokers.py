"""`drover broker` and `drover heal`: failed and returned brokers (KIP-46), drained leaders, and held brokers."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Literal

import click

from drover.cli.exits import ExitCode, Failure
from drover.cli.help import BROKERS, drover_group
from drover.cli.history import read_rows
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.model import CALL_TIMEOUT_MS, open_driver
from drover.cli.output import amount, console, listed, output_option, plural, print_document, say, table, timestamp
from drover.cli.parameters import BROKER, DURATION, MOMENT, SIGHTING, broker_argument
from drover.cli.proposal import print_directories
from drover.cli.submission import (
    check_brokers,
    checked,
    connect,
    exit_code,
    make_request,
    print_answers,
    send,
    send_one,
    write_options,
    yes_option,
)
from drover.client.live_view import View, look, watch
from drover.client.views.heal_rows import OutageRow, heal_document, heal_lines, outage_rows, plan_document, plan_rows
from drover.client.views.history_rows import HistoryRow, Wanted
from drover.client.views.present import clusters_of
from drover.cluster_model import Knowledge, model_of
from drover.errors import ConfigurationError
from drover.events.clusters import HoldRole
from drover.events.commands import BrokerFailed, BrokerReturned, Demote, HealCommand, HoldBroker, ReleaseBroker, Restore
from drover.events.healing import HealingLimits
from drover.inventory import Inventory
from drover.journal.connection import LogConnection
from drover.planner.disks import closed_brokers
from drover.planner.rules import Rules
from drover.reconcile.healing.brokers_to_heal import gather_brokers_to_heal
from drover.reconcile.healing.heal_plan import HealPlan, plan_heal
from drover.settings.settings import Settings
from drover.state.cluster import ClusterState
from drover.state.leaders import KeptOrder
from drover.unreachable import unreachable_in_words, unreachable_sentence

at_option = click.option(
    "--at", type=SIGHTING, help="When: 5m for five minutes ago, 2026-10-01 or 2026-10-01T15:04Z.  [default: now]"
)
PAUSE_S = 0.5


@drover_group()
def broker() -> None:
    """Report that a broker failed or returned, drain its leaders or hold it."""


@broker.command(example="drover broker failed 3 --at 10m --reason 'rack power'")
@broker_argument
@at_option
@yes_option
@write_options
@pass_invocation
def failed(invocation: Invocation, number: int, at: tuple[int, bool] | None, **options: Any) -> None:
    """Record that broker N failed; a second report does not change the time.

    The report has no effect while the broker is seen alive, and ends once it has been alive for 30 s.
    """
    at_ms = _milliseconds(at, options["id_"])
    send_one(
        invocation,
        "broker-failed",
        options,
        lambda envelope: BrokerFailed(**envelope, broker=number, at_ms=at_ms),
        brokers=(number,),
    )


@broker.command(example="drover broker returned 3 --reason 'power is back'")
@broker_argument
@at_option
@write_options
@pass_invocation
def returned(invocation: Invocation, number: int, at: tuple[int, bool] | None, **options: Any) -> None:
    """Record that broker N is back."""
    at_ms = _milliseconds(at, options["id_"])
    send_one(
        invocation, "broker-returned", options, lambda envelope: BrokerReturned(**envelope, broker=number, at_ms=at_ms)
    )


@broker.command(
    name="drain-leaders",
    example="drover broker drain-leaders 3 --for 2h --reason 'restart'\n"
    "drover broker drain-leaders 3 --undo --reason 'restarted'",
)
@broker_argument
@click.option("--undo", is_flag=True, help="Let the broker lead its partitions again.")
@click.option("--for", "for_s", type=DURATION, metavar="TIME", help="End the drain after this time: 2h.")
@yes_option
@write_options
@pass_invocation
def drain_leaders(invocation: Invocation, number: int, for_s: float | None, *, undo: bool, **options: Any) -> None:
    """Move every leader off broker N, as before a restart, and wait until it leads nothing.

    The broker stays on the list of brokers that should not lead until `--undo`, or until the time of `--for` is over.
    """
    if undo and for_s is not None:
        raise click.UsageError("--for is for a drain; leave it out with --undo")
    connection, cluster = connect(invocation)
    request = make_request(invocation, "drain-leaders", cluster, options)
    if undo:
        command: Demote | Restore = Restore(**request.envelope, broker=number)
    else:
        for_ms = None if for_s is None else max(1, round(for_s * 1000))
        command = checked(Demote(**request.envelope, broker=number, for_ms=for_ms))
        check_brokers(connection, cluster, (number,), yes=options["yes"])
    answers = send(connection, [command], request)
    if request.timeout_s is None:
        return

    print_answers(answers, request.output)
    code = exit_code(answers)
    if code is ExitCode.DONE:
        done = wait_for_leaders(connection, cluster, number, request.timeout_s, drained=not undo)
        # On stderr for programs: their document on stdout is complete.
        say(done, err=request.output != "table")
    raise click.exceptions.Exit(code)


def _milliseconds(at: tuple[int, bool] | None, id_: str | None) -> int:
    """Return the time of a report; with `--id` it must be absolute, so that a retry sends the same command."""
    at_ms, is_fixed = at or (round(time.time() * 1000), False)
    if id_ is not None and not is_fixed:
        raise click.UsageError(
            "with --id a retry must send the same command: add --at with a date and a time, such as "
            f"--at {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        )
    return at_ms


@broker.command(example="drover broker hold 3 --as destination --reason 'disk is nearly full'")
@broker_argument
@click.option(
    "--as",
    "role",
    type=click.Choice([role.value for role in HoldRole]),
    default=HoldRole.BOTH.value,
    show_default=True,
    help="Which copies to hold: into the broker (destination), out of it (source), or both.",
)
@yes_option
@write_options
@pass_invocation
def hold(invocation: Invocation, number: int, role: str, **options: Any) -> None:
    """Begin no further copy into or out of broker N; running copies go on."""
    send_one(
        invocation,
        "hold",
        options,
        lambda envelope: HoldBroker(**envelope, broker=number, role=HoldRole(role)),
        brokers=(number,),
    )


@broker.command(example="drover broker release 3 --reason 'new disk'")
@broker_argument
@write_options
@pass_invocation
def release(invocation: Invocation, number: int, **options: Any) -> None:
    """Let copies into and out of broker N begin again, whoever held it."""
    send_one(invocation, "release", options, lambda envelope: ReleaseBroker(**envelope, broker=number))


class Waiting(Enum):
    """How far a drain of leaders or its undo is: under way, done, or not going to finish."""

    GOES_ON = "goes on"
    IS_DONE = "is done"
    IS_LAZY = "is lazy"
    IS_OVER = "is over"


def wait_for_leaders(connection: LogConnection, cluster: str, broker: int, timeout_s: float, *, drained: bool) -> str:
    """Wait until the log shows that the drain or its undo is done, and return a sentence that says so.

    Raises:
        Failure: It is not done after `timeout_s`, or never will be; the work goes on.
    """
    return asyncio.run(_wait(watch(connection, cluster, PAUSE_S), cluster, broker, timeout_s, drained=drained))


async def _wait(
    views: AsyncGenerator[View, None], cluster: str, broker: int, timeout_s: float, *, drained: bool
) -> str:
    deadline = time.monotonic() + timeout_s
    state = ClusterState(cluster)
    async with aclosing(views) as watching:
        async for view in watching:
            state = view.log.cluster(cluster)
            progress = (
                drained_as_far(state, broker, view.log.time_of(cluster)) if drained else restored_as_far(state, broker)
            )
            if progress is Waiting.IS_DONE:
                return _sentence(state, broker, drained=drained)
            if progress is not Waiting.GOES_ON or time.monotonic() > deadline:
                break
        else:
            progress = Waiting.GOES_ON
    raise Failure(_why_unfinished(state, broker, progress), ExitCode.UNFINISHED)


def drained_as_far(state: ClusterState, broker: int, at_ms: int) -> Waiting:
    """Return how far a drain is: done once a count taken after the listing shows that the broker leads nothing.

    `at_ms` is the log's time; later counts are ignored.
    """
    listing = state.listings.get(broker)
    if listing is None:
        return Waiting.IS_OVER
    tally = state.leader_counts.get(broker)
    if tally is None or not listing.since_ms <= tally.at_ms <= at_ms or state.leaders_under_way:
        return Waiting.GOES_ON
    if not tally.leaders:
        return Waiting.IS_DONE
    return Waiting.IS_LAZY if state.limits.lazy_leadership and state.balance is None else Waiting.GOES_ON


def restored_as_far(state: ClusterState, broker: int) -> Waiting:
    """Return how far the undo of a drain is: done once every list that Drover reordered has the broker in its place.

    Other brokers may still be listed. A list that somebody else has reordered since does not count.
    """
    if broker in state.blacklist:
        return Waiting.IS_OVER
    away = any(
        broker in order.canonical and not order.left_alone and not _is_in_order(order, state.listed_for(key.topic))
        for key, order in state.orders.items()
    )
    return Waiting.GOES_ON if away or state.leaders_under_way else Waiting.IS_DONE


def _is_in_order(kept_order: KeptOrder, listed: frozenset[int]) -> bool:
    """Whether the brokers that may lead are back in canonical order; Drover forgets a list only after that."""
    if listed.isdisjoint(kept_order.canonical):
        return False
    here, canonical = (
        [broker for broker in order if broker not in listed] for order in (kept_order.replicas, kept_order.canonical)
    )
    return here == canonical


def _sentence(state: ClusterState, broker: int, *, drained: bool) -> str:
    if drained:
        return f"Broker {broker} of {state.name} leads nothing."
    return f"Every list with broker {broker} of {state.name} is back in its canonical order."


def _why_unfinished(state: ClusterState, broker: int, progress: Waiting) -> str:
    if progress is Waiting.IS_OVER:
        is_listed = "is on the list again" if broker in state.blacklist else "is not on the list any more"
        return f"broker {broker} {is_listed}: somebody has changed the list since; see `drover leaders show`"
    if progress is Waiting.IS_LAZY:
        return (
            f"broker {broker} is listed, but leadership of {state.name} is lazy: leaders move only when "
            "`drover leaders balance` asks for elections"
        )
    tally = state.leader_counts.get(broker)
    leads = "an unknown number of partitions" if tally is None else plural(tally.leaders, "partition")
    return (
        f"broker {broker} still leads {leads}, {len(state.waiting)} wait: see `drover leaders show`. The work goes on."
    )


@drover_group()
def heal() -> None:
    """Replace brokers that stay away in every replica list, by themselves or at once; show and control it."""


@heal.command(example="drover heal status\ndrover heal status --since 30d")
@click.option(
    "--since", "since_ms", type=MOMENT, help="Also what was healed since: 30d, 2026-10-01 or 2026-10-01T15:04Z."
)
@output_option
@common_options
@pass_invocation
def status(invocation: Invocation, output: str, since_ms: int | None) -> None:
    """Show whether healing is on, which brokers are away, since when, and what Drover does about it.

    Reads the log, with --since from its first record.
    """
    settings = invocation.settings()
    cluster = invocation.cluster_wanted(settings)
    states = _states(settings, cluster)
    past = [] if since_ms is None else past_heals(settings.log.connection(), Wanted(cluster, since_ms=since_ms))
    rows = [row for state in states for row in outage_rows(state)]
    if output != "table":
        now_ms = round(time.time() * 1000)
        documents = [heal_document(state, now_ms) for state in states]
        document = {"clusters": documents, "past": [row.document() for row in past]}
        print_document(document, [row.document() for row in rows], output)
        return
    screen = console()
    if rows:
        cells = [(row.cluster, str(row.broker), timestamp(row.since_ms), _heals_at(row), row.state) for row in rows]
        screen.print(table(("cluster", "broker", "away since", "heals at", "state"), cells, right=("broker",)))
    elif not states or any(state.limits.healing is not None for state in states):
        say("No broker is known to be away.")
    for line in (line for state in states for line in heal_lines(state)):
        say(line)
    for row in past:
        say(f"{timestamp(row.at_ms)} {row.cluster}: {row.sentence}")
    if since_ms is not None and not past:
        say("Nothing was healed since then.")


def past_heals(connection: LogConnection, wanted: Wanted) -> list[HistoryRow]:
    """Return what the story tells of heals."""
    rows = asyncio.run(read_rows(connection, wanted))
    return [row for row in rows if row.what.startswith("heal") and row.sentence is not None and not row.is_command]


@heal.command(example="drover heal plan 3")
@click.argument("number", shell_complete=BROKERS, metavar="[N]", type=BROKER, required=False)
@output_option
@common_options
@pass_invocation
def plan(invocation: Invocation, number: int | None, output: str) -> None:
    """Show the moves that would heal the brokers that are away, or broker N; nothing is written.

    Reads the cluster once. `drover alter` accepts the output of -o json.
    """
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    states = {state.name: state for state in _states(settings, cluster)}
    state = states.get(cluster) or ClusterState(cluster)
    limits = state.limits.healing or HealingLimits()
    inventory = asyncio.run(_inventory(settings, cluster))
    brokers, made = _plan_now(inventory, state, number, limits.disk_limit_percent, settings.rules[cluster])
    unreachable = inventory.standings.unreachable
    chunk = limits.chunk_partitions
    print_directories(closed_brokers(model_of(inventory, Knowledge())), err=True)
    if output != "table":
        document = plan_document(made, brokers, chunk)
        print_document(document, document["partitions"], output)
        return
    if unreachable:
        say(f"{unreachable_sentence(unreachable)} Drover heals none of it.")
    if not brokers:
        say("Every broker that has replicas is alive.")
        return
    rows = plan_rows(made, chunk)
    if rows:
        console().print(table(("chunk", "partition", "now", "then", "bytes"), rows, right=("chunk", "bytes")))
    copied = amount(sum(assignment.copied_bytes for assignment in made.assignments))
    names = listed(brokers)
    say(f"Broker {names}: {plural(len(rows), 'partition')} in chunks of {chunk}, {copied} to copy.")
    for partition in made.left:
        say(f"{partition.topic}:{partition.partition} stays, {partition.why.value}: {partition.detail}")


@heal.command(example="drover heal start 3 --reason 'it will not come back'")
@broker_argument
@yes_option
@write_options
@pass_invocation
def start(invocation: Invocation, number: int, **options: Any) -> None:
    """Heal broker N now instead of waiting for its timeout."""
    _send_heal(invocation, "start", number, options, brokers=(number,))


@heal.command(example="drover heal skip 3 --reason 'back within the hour'")
@broker_argument
@write_options
@pass_invocation
def skip(invocation: Invocation, number: int, **options: Any) -> None:
    """Leave broker N alone until it is back."""
    _send_heal(invocation, "skip", number, options)


@heal.command(example="drover heal stop 3 --rollback --reason 'it is back'")
@click.argument("number", shell_complete=BROKERS, metavar="[N]", type=BROKER, required=False)
@click.option("--rollback", is_flag=True, help="Also roll the running chunk back.")
@write_options
@pass_invocation
def stop(invocation: Invocation, number: int | None, *, rollback: bool, **options: Any) -> None:
    """Begin no further chunk for broker N, or for any broker."""
    _send_heal(invocation, "stop", number, options, rollback=rollback)


def _send_heal(
    invocation: Invocation,
    action: Literal["start", "skip", "stop"],
    number: int | None,
    options: dict[str, Any],
    *,
    rollback: bool = False,
    brokers: tuple[int, ...] = (),
) -> None:
    send_one(
        invocation,
        f"heal-{action}",
        options,
        lambda envelope: HealCommand(**envelope, action=action, broker=number, rollback=rollback),
        brokers=brokers,
    )


def _states(settings: Settings, cluster: str | None) -> list[ClusterState]:
    view = asyncio.run(look(settings.log.connection(), cluster))
    return [state for state, _, _ in clusters_of(view, cluster)]


def _heals_at(row: OutageRow) -> str:
    if row.healed_ms is not None:
        return f"done {timestamp(row.healed_ms)}"
    return "-" if row.heals_at_ms is None else timestamp(row.heals_at_ms)


async def _inventory(settings: Settings, cluster: str) -> Inventory:
    async with open_driver(settings, cluster, CALL_TIMEOUT_MS) as driver:
        return await driver.inventory()


def _plan_now(
    inventory: Inventory, state: ClusterState, number: int | None, disk_limit_percent: int, rules: Rules
) -> tuple[tuple[int, ...], HealPlan]:
    """Plan as the owner would; broker N counts as dead even if it is alive.

    Raises `ConfigurationError` for a broker that is neither in the cluster nor in a replica list.
    """
    assigned = {broker for facts in inventory.partitions.values() for broker in facts.replicas}
    if number is not None and number not in assigned and number not in inventory.brokers:
        brokers = listed(sorted({*assigned, *inventory.brokers}))
        raise ConfigurationError(f"there is no broker {number}; there are {brokers}")
    standings = inventory.standings
    if number in standings.unreachable:
        raise ConfigurationError(unreachable_in_words((number,)))
    dead = frozenset(standings.dead(assigned))
    due, away = (tuple(sorted(dead)), dead) if number is None else ((number,), dead | {number})
    return due, plan_heal(inventory, gather_brokers_to_heal(state, due, away), disk_limit_percent, rules)
