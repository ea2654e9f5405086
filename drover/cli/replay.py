"""`drover replay`: fold the whole log from its first record and show the result."""

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import Any

import click

from drover.cli.exits import ExitCode
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import console, output_option, plural, print_document, say, table
from drover.client.history import ValidRecord, open_log
from drover.client.verifying import SnapshotCheck
from drover.fold.log import ShardFold
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.journal.snapshots import stored_snapshots

COLUMNS = ("shard", "records", "batches", "events", "commands", "fenced", "active", "owner", "epoch", "state hash")


@dataclass(slots=True)
class ShardReplay:
    """The result of one shard's records; `old_state_hashes` of its `state_hashes` have a form not made any more."""

    shard: int
    records: int = 0
    batches: int = 0
    events: int = 0
    commands: int = 0
    fenced: int = 0
    stale_acquires: int = 0
    state_hashes: int = 0
    old_state_hashes: int = 0
    active: int = 0
    owner: str = ""
    epoch: int = 0
    state_hash: str = ""

    def count(self, record: ValidRecord) -> None:
        """Count one valid batch."""
        self.batches += 1
        self.events += len(record.batch.events)
        self.commands += len(record.batch.outcomes)
        self.state_hashes += record.batch.state_hash is not None

    def finish(self, fold: ShardFold) -> None:
        """Add what the fold knows at the end."""
        self.records = fold.position
        self.fenced = fold.fenced_batches
        self.stale_acquires = fold.stale_acquires
        self.old_state_hashes = fold.old_state_hashes
        self.active = sum(len(state.reassignments) for state in fold.state.clusters.values())
        self.owner = fold.owner
        self.epoch = fold.epoch
        self.state_hash = fold.state.hash().hex()


@click.command()
@click.option("--verify", is_flag=True, help="Also check the snapshots, and say what was verified.")
@output_option
@common_options
@pass_invocation
def replay(invocation: Invocation, output: str, *, verify: bool) -> None:
    """Fold the log from its first record; print counts, the state's hash per shard and the speed.

    Every reader checks the rules of the log: sequence, hash chain, cursors, and each recorded state hash against the
    recomputed one. A broken rule is named with its position; the shard is counted up to there, and the exit code is 5.
    With --verify, each stored snapshot is also compared with the log. A snapshot that differs ends with exit code 1;
    readers that notice this do not use it, and the next snapshot replaces it.
    """
    settings = invocation.settings()
    cluster = invocation.cluster_wanted(settings)
    started = time.perf_counter()
    shards, snapshots, damaged = asyncio.run(_replay(settings.log.connection(), cluster, verify=verify))
    seconds = time.perf_counter() - started
    document = {**replay_document(shards, seconds), **({"snapshots": len(snapshots)} if verify else {})}
    wrong = [why for why in snapshots if why]
    for why in (*wrong, *damaged):
        say(why, err=True)
    if output != "table":
        print_document(document, document["shards"], output)
        _end(wrong, damaged)
        return
    console().print(table(COLUMNS, map(cells_of, shards), right=COLUMNS[:7]))
    say(
        f"{plural(document['events'], 'event')} in {seconds:.2f} s, {document['events_per_second']:,.0f} events/s",
        err=True,
    )
    if verify and not damaged:
        old = document["old_state_hashes"]
        passed_over = f" ({old:,} more have a form that is not made any more)" if old else ""
        say(
            f"Verified: {plural(document['batches'], 'chain link')} and {document['state_hashes'] - old:,} recorded "
            f"state hashes agree{passed_over}; {len(snapshots) - len(wrong)} of "
            f"{plural(len(snapshots), 'stored snapshot')} agree with the log."
        )
    _end(wrong, damaged)


def _end(wrong: list[str], damaged: list[str]) -> None:
    if damaged:
        raise click.exceptions.Exit(ExitCode.CORRUPT)
    if wrong:
        raise click.exceptions.Exit(ExitCode.FAILED)


async def _replay(
    connection: LogConnection, cluster: str | None, *, verify: bool
) -> tuple[list[ShardReplay], list[str], list[str]]:
    """Fold everything; returns each shard's result, what is wrong with each stored snapshot, and where damage is."""
    async with LogReader(connection) as reader:
        log = await open_log(reader, connection, cluster)
        shards = {shard: ShardReplay(shard) for shard in log.folds}
        stored = await stored_snapshots(reader, connection.topics, log.folds.keys()) if verify else []
        check = SnapshotCheck(stored)
        async for records in reader.read(connection.topics.events, log.positions):
            for piece in [records] if not stored else [(record,) for record in records]:
                for record in log.take(piece):
                    shards[record.shard].count(record)
                check.see(log.folds[piece[0].shard])
    for shard, fold in log.folds.items():
        shards[shard].finish(fold)
    return list(shards.values()), check.results(), list(log.damaged.values())


def replay_document(shards: list[ShardReplay], seconds: float) -> dict[str, Any]:
    """Return the result for programs; fields may be added and never changed."""
    events = sum(shard.events for shard in shards)
    return {
        "shards": [asdict(shard) for shard in shards],
        "records": sum(shard.records for shard in shards),
        "batches": sum(shard.batches for shard in shards),
        "events": events,
        "state_hashes": sum(shard.state_hashes for shard in shards),
        "old_state_hashes": sum(shard.old_state_hashes for shard in shards),
        "seconds": round(seconds, 3),
        "events_per_second": round(events / seconds, 1) if seconds else 0.0,
    }


def cells_of(shard: ShardReplay) -> tuple[str, ...]:
    """Write one shard's row."""
    counts = (shard.records, shard.batches, shard.events, shard.commands, shard.fenced, shard.active)
    return (
        str(shard.shard),
        *(f"{count:,}" for count in counts),
        shard.owner or "(never owned)",
        str(shard.epoch),
        shard.state_hash,
    )
