"""`--explain broker 3`: the loads of a broker after a plan, and why they are no closer to its fair share."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from drover.cli.output import console, listed, say, table
from drover.cli.parameters import BROKER
from drover.planner.goals import Limits
from drover.planner.model import ClusterModel
from drover.planner.proposal import Proposal

if TYPE_CHECKING:
    from drover.planner.explaining import Explanation, Standing

explain_option = click.option(
    "--explain",
    type=(click.Choice(["broker"]), BROKER),
    metavar="broker ID",
    help="Show the loads of this broker after the plan, and why they are no closer to its fair share.",
)


def explained(
    model: ClusterModel, proposal: Proposal, limits: Limits, leaving: frozenset[int], options: dict[str, Any]
) -> "Explanation | None":
    """Return the explanation that `--explain` asks for; None without the option, or if the plan is refused."""
    if options["explain"] is None or proposal.refused:
        return None
    # numpy costs start-up time, and few commands need it.
    from drover.planner.explaining import explain  # noqa: PLC0415

    _, broker = options["explain"]
    if broker not in model.broker_by_id:
        brokers = listed([each.id for each in model.brokers])
        raise click.UsageError(f"--explain: there is no broker {broker}; there are {brokers}")
    targets = {(topic, number): after for topic, number, after in proposal.targets}
    return explain(model, targets, limits, broker, leaving)


def print_explanation(explanation: "Explanation") -> None:
    """Print an explanation for people."""
    say()
    if explanation.outside:
        say(f"Broker {explanation.broker} has no fair share, and gets nothing: {explanation.outside}.")
        return
    say(f"Broker {explanation.broker}, in shares of what is fair for it:")
    columns = ("load", "now", "then", "band", "used then", "limit", "verdict")
    lines = [_cells(standing) for standing in explanation.standings]
    console().print(table(columns, lines, right=columns[1:-1]))
    for attempt in explanation.attempts:
        say(f"Of {attempt.count:,} {attempt.kind}:")
        for why, count in attempt.obstacles.items():
            say(f"  {count:,} {why}")


def explanation_document(explanation: "Explanation") -> dict[str, Any]:
    """Return an explanation for programs; fields may be added and never changed."""
    standings = [{**asdict(each), "verdict": each.verdict} for each in explanation.standings]
    return {**asdict(explanation), "standings": standings}


def _cells(standing: "Standing") -> tuple[str, ...]:
    return (
        standing.load,
        f"{standing.before:.3f}",
        f"{standing.after:.3f}",
        f"{standing.lowest:.3f} to {standing.highest:.3f}",
        "" if standing.used is None else f"{standing.used:.0%}",
        "" if standing.limit is None else f"{standing.limit:.0%}",
        standing.verdict,
    )
