"""`drover plan`: propose the moves that reach a goal; nothing is done without --apply."""

from pathlib import Path
from typing import Any

import click

from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import output_option
from drover.cli.parameters import Names, Rate, Size, brokers_argument
from drover.cli.plan_check import check_plan
from drover.cli.plan_reading import plan_file_type
from drover.cli.planning import judging_options, plan_goal, planning_options
from drover.planner import goals


@click.group()
def plan() -> None:
    """Propose the moves that reach a goal: the fewest bytes first, then the best balance.

    Nothing is done without --apply. Exit code 2: the goal makes no sense in this cluster; 4: something cannot be met.
    """


@plan.command()
@brokers_argument("BROKER...")
@planning_options
@pass_invocation
def drain(invocation: Invocation, brokers: tuple[int, ...], **options: Any) -> None:
    """Take every replica off these brokers."""
    plan_goal(invocation, _said("drain", *brokers), goals.Drain(brokers), options)


@plan.command()
@brokers_argument("BROKER...")
@planning_options
@pass_invocation
def add(invocation: Invocation, brokers: tuple[int, ...], **options: Any) -> None:
    """Fill brokers that have joined."""
    plan_goal(invocation, _said("add", *brokers), goals.Add(brokers), options)


@plan.command()
@click.argument("broker", type=click.IntRange(min=0), metavar="BROKER")
@click.option(
    "--with",
    "replacement",
    type=click.IntRange(min=0),
    required=True,
    metavar="BROKER",
    help="The one that takes over.",
)
@planning_options
@pass_invocation
def replace(invocation: Invocation, broker: int, replacement: int, **options: Any) -> None:
    """Give what a broker has, dead or alive, to another one, each replica in its place in the order."""
    plan_goal(invocation, _said("replace", broker, "with", replacement), goals.Replace(broker, replacement), options)


@plan.command()
@click.option("--max-bytes", type=Size(), metavar="SIZE", help="Copy no more than that: 500GB, 2TiB.")
@click.option("--max-moves", type=click.IntRange(min=0), metavar="N", help="Copy no more replicas than that.")
@planning_options
@pass_invocation
def balance(invocation: Invocation, max_bytes: int | None, max_moves: int | None, **options: Any) -> None:
    """Even out replicas, bytes and preferred leaders, as far as that is worth the bytes."""
    plan_goal(invocation, "balance", goals.Balance(max_bytes, max_moves), options)


@plan.command(name="set-rf")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True, type=Names())
@click.argument("factor", type=click.IntRange(min=1), metavar="REPLICAS")
@planning_options
@pass_invocation
def set_rf(invocation: Invocation, topics: tuple[tuple[str, ...], ...], factor: int, **options: Any) -> None:
    """Give every partition of these topics so many replicas, more or fewer; * and ? stand for anything."""
    named = tuple(topic for given in topics for topic in given)
    plan_goal(invocation, _said("set-rf", *named, factor), goals.SetReplicationFactor(named, factor), options)


@plan.command()
@click.argument("rack", metavar="RACK")
@planning_options
@pass_invocation
def evacuate(invocation: Invocation, rack: str, **options: Any) -> None:
    """Take every replica off the brokers of a rack."""
    plan_goal(invocation, _said("evacuate", rack), goals.Evacuate(rack), options)


@plan.command()
@planning_options
@pass_invocation
def spread(invocation: Invocation, **options: Any) -> None:
    """Spread partitions over as many racks as the brokers allow, and change nothing else."""
    plan_goal(invocation, "spread", goals.Spread(), options)


@plan.command()
@planning_options
@pass_invocation
def leaders(invocation: Invocation, **options: Any) -> None:
    """Even out the preferred leaders by the order of replica lists alone; nothing is copied."""
    plan_goal(invocation, "leaders", goals.Leaders(), options)


@plan.command()
@click.argument("files", metavar="PLAN.json...", nargs=-1, required=True, type=plan_file_type)
@click.option("--throttle", type=Rate(), metavar="RATE", help="Say how long it takes at least at this rate.")
@judging_options
@output_option
@common_options
@pass_invocation
def check(invocation: Invocation, files: tuple[Path, ...], **options: Any) -> None:
    """Judge a plan that somebody else made, by the same figures: stock --generate, Cruise Control, topicmappr.

    Nothing is sent. Exit code 4 says that the plan breaks something.
    """
    check_plan(invocation, files, options)


def _said(*words: object) -> str:
    return " ".join(map(str, words))
