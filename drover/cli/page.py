"""The sources of `drover web` besides the log: reviews of plans, throttles of others, and Spark's tables."""

import shlex
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from msgspec import to_builtins

from drover.cli.model import Source, live_model
from drover.cli.parameters import parse_rate
from drover.cli.plan_file import Lists, lists_of, parse_plan
from drover.cli.spark import directory_of
from drover.cli.throttle import find_throttles
from drover.client.views.broker_marks import broker_marks
from drover.client.views.found_throttles import FoundEntries, FoundRates, Whose
from drover.client.views.proposal_rows import Request, changed_brokers, proposal_document, unmet_lines
from drover.errors import ConfigurationError
from drover.planner.assess import assess, basis_of, digest_of
from drover.planner.goals import Limits
from drover.planner.judgement import broken
from drover.planner.model import ClusterModel
from drover.settings.settings import Settings
from drover.spark.files import JobFiles
from drover.spark.heartbeat import state_of_job
from drover.spark.sinks.sqlite import read_rows, read_standing
from drover.spark.view import durations, now_ms, open_tables
from drover.state.cluster import ClusterState
from drover.threads import in_daemon_thread
from drover.web.surveys import Looking, PastedPlan

SHOWN_ROWS = 200
SHOWN_ENTRIES = 12
# The most rows of a table that grows with time; the latest are shown.
SHOWN_TABLE_ROWS = 100
SHOWN_MOVES = 500
SHOWN_UNMET = 200


def looking_at(settings: Settings) -> Looking:
    """Return the functions by which the page reads the clusters of these settings."""
    return Looking(Reviewer(settings).review, partial(find_others, settings))


async def find_others(settings: Settings, cluster: str) -> Mapping[str, Any]:
    """Return the throttles in a cluster that Drover has not set, cut to the rows that a page shows."""
    throttles = await find_throttles(settings, cluster)
    return others_document(throttles.rates, throttles.entries, time.time_ns() // 1_000_000)


def others_document(rates: Iterable[FoundRates], entries: Iterable[FoundEntries], at_ms: int) -> dict[str, Any]:
    """Return the rows that are not Drover's, leftovers first; long lists are cut, and their full lengths are given."""
    brokers = sorted((row for row in rates if row.whose is not Whose.OURS), key=_is_leftover, reverse=True)
    topics = sorted((row for row in entries if row.whose is not Whose.OURS), key=_is_leftover, reverse=True)
    return {
        "at_ms": at_ms,
        "leftovers": sum(map(_is_leftover, brokers)) + sum(map(_is_leftover, topics)),
        "brokers": [row.document() for row in brokers[:SHOWN_ROWS]],
        "brokers_total": len(brokers),
        "topics": [
            {
                **row.document(),
                **{side: list(getattr(row, side)[:SHOWN_ENTRIES]) for side in ("leader", "follower")},
                "entries_total": len(row.leader) + len(row.follower),
            }
            for row in topics[:SHOWN_ROWS]
        ],
        "topics_total": len(topics),
    }


def _is_leftover(row: FoundRates | FoundEntries) -> bool:
    return row.whose is Whose.LEFTOVER


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Judges plans for the clusters of these settings."""

    settings: Settings

    async def review(self, state: ClusterState, plan: PastedPlan) -> Mapping[str, Any]:
        """Judge a plan against the cluster as it is now, in a thread of its own.

        Raises `ConfigurationError` for an invalid plan, `ValueError` for an invalid rate, and `ClusterError` if the
        cluster does not answer.
        """
        # Check the plan before asking the cluster; daemon threads, so that the page can stop without waiting for them.
        read, _thread = in_daemon_thread("review", partial(_lists, plan))
        await read
        if plan.throttle:
            parse_rate(plan.throttle)
        model = await live_model(self.settings, state, Source())
        limits = self.settings.planning.planner_limits
        judged, _thread = in_daemon_thread("review", partial(judge, model, state.name, plan, limits))
        document = await judged
        for move in document["moves"]:
            move["marks"] = to_builtins(broker_marks(state, (*move["before"], *move["after"]), move["topic"]))
        return document


def _lists(plan: PastedPlan) -> Lists:
    return lists_of(parse_plan(plan.text, plan.name), plan.name)


def judge(model: ClusterModel, cluster: str, plan: PastedPlan, limits: Limits) -> dict[str, Any]:
    """Return the document of `drover plan check -o json`, cut to the rows of a page, and the commands to go on with."""
    lists = _lists(plan)
    proposal = assess(model, lists, limits)
    rate = parse_rate(plan.throttle) if plan.throttle else None
    request = Request(f"check {plan.name}", cluster, rate)
    document = proposal_document(proposal, request, model)
    lines = unmet_lines(proposal, request, model)
    racks = document["rack_violations"]
    partitions = model.partition_by_name
    internal = any(partitions[name].internal for name in lists.keys() & partitions.keys())
    return {
        **document,
        "moves": document["moves"][:SHOWN_MOVES],
        "moves_total": len(document["moves"]),
        "unchanged": sum(
            (partition := partitions.get(name)) is not None and partition.replicas == after
            for name, after in lists.items()
        ),
        "brokers": [asdict(figures) for figures in changed_brokers(proposal)],
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


class Tables:
    """Spark's tables, as the page shows them."""

    def __init__(self, settings: Settings) -> None:
        self._directory: Path = directory_of(settings.spark, None).absolute()

    def read(self, cluster: str | None) -> Mapping[str, Any]:
        """Read the tables of one cluster or of all, with their age; if there are none, say why.

        Tables that grow with time are cut to their latest rows, newest first.
        """
        files = JobFiles(self._directory)
        try:
            with open_tables(files) as connection:
                connection.execute("begin")  # reads all tables as of the same batch
                standing = read_standing(connection)
                tables = {name: _latest_of(connection, name, cluster) for name in ("refusals", "requests")}
                tables["takeovers"] = _latest_takeovers(connection)
                tables["durations"] = durations(_of(cluster, read_rows(connection, "durations")))
        except ConfigurationError as error:
            return {"missing": str(error)}
        return {
            "job": state_of_job(files.alive, now_ms()),
            "newest_record_ms": None if standing is None else standing.newest_ms,
            "applied_ms": None if standing is None else standing.applied_ms,
            **tables,
        }


def _latest_of(connection: Connection, table: str, cluster: str | None) -> list[Any]:
    where, values = ("", ()) if cluster is None else ("where cluster = ?", (cluster,))
    return list(read_rows(connection, table, f"{where} order by window_ms desc limit ?", (*values, SHOWN_TABLE_ROWS)))


def _latest_takeovers(connection: Connection) -> list[Any]:
    """Read the latest takeovers shard by shard, because the table is large and indexed by shard."""
    (last,) = connection.execute("select max(shard) from takeovers").fetchone()
    latest = "where shard = ? order by window_ms desc limit ?"
    shards = range(0 if last is None else last + 1)
    rows = [row for shard in shards for row in read_rows(connection, "takeovers", latest, (shard, SHOWN_TABLE_ROWS))]
    return sorted(rows, key=lambda row: (-row["window_ms"], row["shard"]))[:SHOWN_TABLE_ROWS]


def _of(cluster: str | None, rows: Iterable[Any]) -> list[Any]:
    return [row for row in rows if cluster in {None, row.get("cluster", cluster)}]
