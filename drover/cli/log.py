"""`drover log`, `drover replay` and `drover dead-letters`: create, check, resume and replay the log."""

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import Any

import click

from drover.cli.exits import ExitCode
from drover.cli.help import drover_command, drover_group
from drover.cli.invocation import Invocation, author_option, common_options, pass_invocation, settings_options
from drover.cli.output import console, output_option, plural, print_document, say, table, timestamp
from drover.cli.submission import confirmed
from drover.client.history import ValidRecord, open_log
from drover.client.snapshot_check import SnapshotCheck
from drover.client.views.dead_letter_rows import DeadLetter, dead_letter
from drover.cluster.reach import check_reachable
from drover.events.topics import DEFAULT_SHARDS
from drover.fold.log import ShardFold
from drover.journal import topics as own_topics
from drover.journal.connection import LogConnection
from drover.journal.reader import LogReader
from drover.journal.snapshots import stored_snapshots

REPLAY_COLUMNS = (
    "shard", "records", "batches", "events", "commands", "fenced", "active", "owner", "epoch", "state hash",
)  # fmt: skip
PREVIEW_CHARACTERS = 200


@dataclass(slots=True)
class ShardReplay:
    """The replay of one shard."""

    shard: int
    records: int = 0
    batches: int = 0
    events: int = 0
    commands: int = 0
    fenced: int = 0
    stale_acquires: int = 0
    state_hashes: int = 0
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
        """Add the final position, owner and hash of the fold."""
        self.records = fold.position
        self.fenced = fold.fenced_batches
        self.stale_acquires = fold.stale_acquires
        self.active = sum(len(state.reassignments) for state in fold.state.clusters.values())
        self.owner = fold.owner
        self.epoch = fold.epoch
        self.state_hash = fold.state.hash().hex()


@drover_group()
def log() -> None:
    """Create and check the log and Drover's other topics, and let a damaged log go on."""


@log.command(example="drover log init")
@click.option(
    "--shards",
    type=click.IntRange(min=1, max=1000),
    default=DEFAULT_SHARDS,
    show_default=True,
    help="The number of shards; it is fixed for ever once the log has begun.",
)
@settings_options
@pass_invocation
def init(invocation: Invocation, shards: int) -> None:
    """Create missing topics and begin every shard of the log; harmless if repeated."""
    connection = invocation.settings().log.connection()
    asyncio.run(check_reachable(connection.bootstrap))
    created = asyncio.run(own_topics.init(connection, shards, tell=lambda line: say(line, err=True)))
    say(f"Created {', '.join(created)}." if created else "Every topic already exists.")


@log.command(example="drover log check")
@output_option
@settings_options
@pass_invocation
def check(invocation: Invocation, output: str) -> None:
    """Compare every topic with Drover's needs; if one differs, print the remedy and end with exit code 1."""
    connection = invocation.settings().log.connection()
    asyncio.run(check_reachable(connection.bootstrap))
    findings = asyncio.run(own_topics.check(connection))
    if output != "table":
        rows = [asdict(finding) for finding in findings]
        print_document({"findings": rows}, rows, output)
    else:
        for finding in findings:
            say(str(finding))
        if not findings:
            say("Every topic is configured as Drover needs it.")
    raise click.exceptions.Exit(ExitCode.FAILED if findings else ExitCode.DONE)


@drover_command(example="drover replay --verify")
@click.option("--verify", is_flag=True, help="Also check the snapshots, and print what was verified.")
@output_option
@common_options
@pass_invocation
def replay(invocation: Invocation, output: str, *, verify: bool) -> None:
    """Fold the log from its first record; print counts, the state's hash per shard and the speed.

    Checks the rules of the log as every reader does: sequence, hash chain, cursors, and each recorded state hash
    against the recomputed one. If a rule is broken, prints its position, counts the shard up to there, and ends with
    exit code 5. With --verify, also compares each stored snapshot with the log; the exit code is 1 if one differs.
    Readers do not use such a snapshot, and the next one replaces it.
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
        _end_replay(wrong, damaged)
        return
    console().print(table(REPLAY_COLUMNS, map(replay_cells, shards), right=REPLAY_COLUMNS[:7]))
    say(
        f"{plural(document['events'], 'event')} in {seconds:.2f} s, {document['events_per_second']:,.0f} events/s",
        err=True,
    )
    if verify and not damaged:
        say(
            f"Verified: {plural(document['batches'], 'chain link')} and {document['state_hashes']:,} recorded "
            f"state hashes agree; {len(snapshots) - len(wrong)} of "
            f"{plural(len(snapshots), 'stored snapshot')} agree with the log."
        )
    _end_replay(wrong, damaged)


def _end_replay(wrong: list[str], damaged: list[str]) -> None:
    if damaged:
        raise click.exceptions.Exit(ExitCode.CORRUPT)
    if wrong:
        raise click.exceptions.Exit(ExitCode.FAILED)


async def _replay(
    connection: LogConnection, cluster: str | None, *, verify: bool
) -> tuple[list[ShardReplay], list[str], list[str]]:
    """Fold every shard; return each shard's result, the fault of each stored snapshot, and the places of damage."""
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
        "seconds": round(seconds, 3),
        "events_per_second": round(events / seconds, 1) if seconds else 0.0,
    }


def replay_cells(shard: ShardReplay) -> tuple[str, ...]:
    """Format one shard's row."""
    counts = (shard.records, shard.batches, shard.events, shard.commands, shard.fenced, shard.active)
    return (
        str(shard.shard),
        *(f"{count:,}" for count in counts),
        shard.owner or "(never owned)",
        str(shard.epoch),
        shard.state_hash,
    )


@log.command(example="drover log recover 3\ndrover log recover 3 --after 1729")
@click.argument("shard", type=click.IntRange(min=0))
@click.option(
    "--after",
    "offset",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    help="The damaged record.  [default: only show it]",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common_options
@author_option
@pass_invocation
def recover(invocation: Invocation, shard: int, offset: int | None, *, yes: bool) -> None:
    """Show where the log of SHARD is damaged; with --after, let it go on from the state before the damage.

    Every reader then ignores the damaged record and the records after it. Moves that run in the clusters are adopted,
    as after every takeover. docs/recovery.md says when this is right.
    """
    from drover.journal.recovery import folded_to_end, resume_shard  # noqa: PLC0415 - structlog costs start-up time

    connection = invocation.settings().log.connection()
    fold = asyncio.run(folded_to_end(connection, shard))
    if fold.damage is None:
        say(f"The log of shard {shard} is not damaged.")
        return
    say(_damage_text(fold))
    if offset is None:
        say(f"Let it go on from there with: drover log recover {shard} --after {fold.damage.offset}")
        return
    if not (yes or confirmed("Shall every reader ignore these records for ever?")):
        raise click.UsageError("nothing was written")
    asyncio.run(resume_shard(connection, fold, offset, f"{invocation.author}, drover log recover"))
    say(f"Shard {shard} goes on with the state from before offset {offset}; a worker takes it within a minute.")


def _damage_text(fold: ShardFold) -> str:
    assert fold.damage is not None, "the shard is damaged"
    until = f"decided until {timestamp(fold.at_ms)}" if fold.sequence else "before its first decision"
    behind = fold.position - fold.damage.offset - 1
    return f"{fold.damage.detail}.\nThe state before it was {until}; {plural(behind, 'record')} follow it."


@drover_group()
def dead_letters() -> None:
    """Show the records that could not be read as commands."""


@dead_letters.command(name="list", example="drover dead-letters list")
@output_option
@settings_options
@pass_invocation
def list_(invocation: Invocation, output: str) -> None:
    """List every dead letter, oldest first."""
    letters = asyncio.run(_read_dead_letters(invocation.settings().log.connection()))
    if output != "table":
        documents = [asdict(letter) for letter in letters]
        print_document({"dead_letters": documents}, documents, output)
    elif letters:
        console().print(
            table(("time", "from", "why", "bytes", "content"), map(_dead_letter_cells, letters), right=("bytes",))
        )
    else:
        say("There are no dead letters.", err=True)


async def _read_dead_letters(connection: LogConnection) -> list[DeadLetter]:
    topic = connection.topics.dead_letters
    letters: list[DeadLetter] = []
    async with LogReader(connection) as reader:
        start = await reader.start_offsets(topic, range(await reader.partitions(topic)))
        async for records in reader.read(topic, start):
            letters += map(dead_letter, records)
    return sorted(letters, key=lambda letter: (letter.at_ms, letter.offset))


def _dead_letter_cells(letter: DeadLetter) -> tuple[str, ...]:
    content = letter.content
    return (
        timestamp(letter.at_ms),
        f"{letter.topic} {letter.partition}@{letter.source_offset}",
        letter.error,
        f"{letter.size_bytes:,}",
        content if len(content) <= PREVIEW_CHARACTERS else content[:PREVIEW_CHARACTERS] + "…",
    )
