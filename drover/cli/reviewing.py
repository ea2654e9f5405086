"""The Review view of `drover web`: a plan that somebody pasted, judged as `drover plan check` judges a file."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from msgspec import to_builtins

from drover.cli.model_source import Source, live_model
from drover.cli.parameters import parse_rate
from drover.cli.plan_file import Lists, lists_of, parse_plan
from drover.client.views.broker_marks import broker_marks
from drover.client.views.proposal_rows import Request, changed_brokers, proposal_document, unmet_lines
from drover.planner.assess import assess, basis_of, digest_of
from drover.planner.goals import Limits
from drover.planner.judgement import broken
from drover.planner.model import ClusterModel
from drover.settings.settings import Settings
from drover.state.cluster import ClusterState
from drover.threads import in_daemon_thread
from drover.web.surveys import PastedPlan

SHOWN_MOVES = 500
SHOWN_UNMET = 200


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Judges plans for the clusters of these settings."""

    settings: Settings

    async def review(self, state: ClusterState, plan: PastedPlan) -> Mapping[str, Any]:
        """Judge a plan against the cluster as it is now, away from the loop.

        Raises `ConfigurationError` for what is no plan, `ValueError` for what is no rate, and `ClusterError` if the
        cluster does not answer.
        """
        # In threads of their own, which no stop of the page waits for; and before the cluster is asked.
        read, _thread = in_daemon_thread("review", partial(_lists, plan))
        await read
        if plan.throttle:
            parse_rate(plan.throttle)
        model = await live_model(self.settings, state, Source())
        limits = Limits(disk_limit=self.settings.planning.disk_limit)
        judged, _thread = in_daemon_thread("review", partial(judge, model, state.name, plan, limits))
        document = await judged
        for move in document["moves"]:
            move["marks"] = to_builtins(broker_marks(state, (*move["before"], *move["after"]), move["topic"]))
        return document


def _lists(plan: PastedPlan) -> Lists:
    return lists_of(parse_plan(plan.text, plan.name), plan.name)


def judge(model: ClusterModel, cluster: str, plan: PastedPlan, limits: Limits) -> dict[str, Any]:
    """Return the document of `drover plan check -o json`, cut to what a page shows, and the same as command lines."""
    lists = _lists(plan)
    proposal = assess(model, lists, limits)
    rate = parse_rate(plan.throttle) if plan.throttle else None
    request = Request(f"check {plan.name}", cluster, rate)
    document = proposal_document(proposal, request, model)
    lines = unmet_lines(proposal, request, model)
    racks = document["rack_violations"]
    known = model.partition_by_name
    internal = any(known[name].internal for name in lists.keys() & known.keys())
    return {
        **document,
        "moves": document["moves"][:SHOWN_MOVES],
        "moves_total": len(document["moves"]),
        "unchanged": sum(
            (one := known.get(name)) is not None and one.replicas == after for name, after in lists.items()
        ),
        "brokers": [asdict(one) for one in changed_brokers(proposal)],
        "rack_violations": {"before": racks["before"], "after": racks["after"]},
        "problems": lines[:SHOWN_UNMET],
        "problems_total": len(lines),
        "is_blocked": bool(broken(proposal.unmet)),
        "commands": _commands(cluster, plan, digest_of(basis_of(model, lists), lists), internal=internal),
    }


def _commands(cluster: str, plan: PastedPlan, digest: str, *, internal: bool) -> list[str]:
    throttle = f" --throttle {shlex.quote(plan.throttle)}" if plan.throttle else ""
    file, also = shlex.quote(plan.name), " --allow-drover-topics" if internal else ""
    return [
        f"drover --cluster {cluster} plan check {file}{throttle}",
        f"drover --cluster {cluster} alter {file} --plan-hash {digest}{throttle}{also} --reason WHY",
    ]
