"""A proposal for people: the moves, the figures of each broker, and the balance before and after."""

from collections.abc import Iterator, Sequence

from drover.cli.help import did_you_mean
from drover.cli.output import amount, console, duration, listed, plural, say, table
from drover.client.views.proposal_rows import (
    MoveRow,
    Request,
    changed_brokers,
    directory_remarks,
    least_time_s,
    move_rows,
    unmet_lines,
)
from drover.planner.disks import DiskRemark
from drover.planner.judgement import broken
from drover.planner.model import ClusterModel
from drover.planner.proposal import BrokerFigures, LoadFigures, LoadLevel, Proposal, Spread, UnmetCode

SHOWN_MOVES = 20
SHOWN_BROKERS = 40
SHOWN_UNMET = 20
SHOWN_DIRECTORIES = 20


def print_proposal(proposal: Proposal, request: Request, model: ClusterModel) -> None:
    """Print a proposal; the table of a large one is cut to its first moves."""
    say(f"{request.asked}: {_headline(proposal)}")
    if proposal.moves:
        _print_moves(move_rows(proposal))
        print_brokers(changed_brokers(proposal), model)
        _print_evenness(proposal)
        for line in note_lines(proposal, request.throttle_bytes_per_second):
            say(line)
    _print_unmet(proposal, request, model)
    print_directories(directory_remarks(proposal, model))
    if proposal.moves:
        say(f"Hash: {proposal.digest}")


def _headline(proposal: Proposal) -> str:
    if proposal.refused:
        return "this cannot be planned."
    if proposal.empty:
        return "nothing can be moved." if broken(proposal.unmet) else "nothing has to move."
    return cost_line(proposal, len(proposal.moves))


def cost_line(proposal: Proposal, partitions: int) -> str:
    """Say how many partitions change, and how much that copies."""
    copies = f"{plural(proposal.copies, 'copy', 'copies')} of {amount(proposal.copied_bytes)} together"
    if not proposal.copies:
        copies = "nothing to copy"
    leaders = f"{proposal.leaders_moved:,} with another preferred leader afterwards"
    return f"{plural(partitions, 'partition')} to change, {copies}, {leaders}."


def _print_moves(rows: Sequence[MoveRow]) -> None:
    lines = [
        (
            f"{row.topic}:{row.partition}",
            listed(row.before),
            listed(row.after),
            "unknown" if row.bytes is None else amount(row.bytes) if row.adding else "",
            "; ".join(row.reasons),
        )
        for row in rows[:SHOWN_MOVES]
    ]
    console().print(table(("partition", "replicas", "new replicas", "bytes", "why"), lines, right=("bytes",)))
    if len(rows) > SHOWN_MOVES:
        say(f"... and {len(rows) - SHOWN_MOVES:,} more: -o jsonl prints all, --out FILE writes them.")
    say()


def print_brokers(figures: Sequence[BrokerFigures], model: ClusterModel) -> None:
    """Print the figures of the brokers that the moves affect most."""
    brokers = model.broker_by_id
    lines = [
        (
            str(each.broker),
            (brokers[each.broker].rack or "") if each.broker in brokers else "",
            _change(f"{each.replicas_before:,}", f"{each.replicas_after:,}"),
            _change(f"{each.leaders_before:,}", f"{each.leaders_after:,}"),
            _change(amount(each.disk_bytes_before), amount(each.disk_bytes_after)),
            amount(each.bytes_in) if each.bytes_in else "",
            amount(each.bytes_out) if each.bytes_out else "",
            amount(each.peak_extra_bytes) if each.peak_extra_bytes else "",
            "unknown" if each.room_bytes is None else amount(each.room_bytes),
        )
        for each in _busiest(figures)
    ]
    columns = ("broker", "rack", "replicas", "leaders", "bytes", "in", "out", "peak extra", "room")
    console().print(table(columns, lines, right=columns[2:]))
    if len(figures) > SHOWN_BROKERS:
        say(f"... and {len(figures) - SHOWN_BROKERS:,} brokers that change less: -o json prints all.")
    say()


def _busiest(figures: Sequence[BrokerFigures]) -> list[BrokerFigures]:
    """Return the brokers that a proposal affects most, in the order of their ids."""
    shown = sorted(
        figures, key=lambda each: -max(each.bytes_in, each.bytes_out, each.disk_bytes_before - each.disk_bytes_after)
    )
    return sorted(shown[:SHOWN_BROKERS], key=lambda each: each.broker)


def _print_evenness(proposal: Proposal) -> None:
    if proposal.loads:
        _print_loads(proposal.loads)
        return
    before, after = proposal.before, proposal.after
    lines = [
        (name, *_shares(was), *_shares(now))
        for name, was, now in (
            ("replicas", before.count, after.count),
            ("bytes", before.disk, after.disk),
            ("preferred leaders", before.leaders, after.leaders),
        )
    ]
    columns = ("of the mean", "highest now", "lowest now", "highest then", "lowest then")
    console().print(table(columns, lines, right=columns[1:]))
    say()


def _print_loads(figures: Sequence[LoadFigures]) -> None:
    """Print each load before and after, in shares of what is fair for a broker."""
    lines = [(each.load, *(cell for level in (each.before, each.after) for cell in _level(level))) for each in figures]
    columns = ("of the fair share", "highest", "lowest", "outside", "highest then", "lowest then", "outside then")
    console().print(table(columns, lines, right=columns[1:]))
    full, left = (
        sum(level.above_limit for level in levels)
        for levels in zip(*((f.before, f.after) for f in figures), strict=True)
    )
    if full or left:
        say(f"Loads above the limit of a capacity: {full:,} now, {left:,} afterwards.")
    say()


def _level(level: LoadLevel) -> tuple[str, str, str]:
    return f"{level.highest:.3f}", f"{level.lowest:.3f}", f"{level.outside:,}"


def note_lines(proposal: Proposal, throttle: int | None) -> Iterator[str]:
    """Yield notes about a proposal: rack violations, the least time, and unknown sizes and disks."""
    before, after = proposal.rack_violations_before, proposal.rack_violations_after
    if before or after:
        yield f"Partitions in fewer racks than possible: {before:,} now, {after:,} afterwards."
    least_s = least_time_s(proposal, throttle)
    if least_s is not None:
        rate = amount(throttle or 0)
        yield f"It takes at least {duration(least_s * 1000)} at {rate}/s per broker."
    elif proposal.copies:
        yield "Add --throttle RATE to estimate the least time."
    if proposal.unknown_sizes:
        yield f"{plural(proposal.unknown_sizes, 'partition')} of unknown size count as empty."
    for line in proposal.unknown_loads:
        yield f"Loads: {line}."
    if proposal.unknown_disks:
        brokers = listed(proposal.unknown_disks)
        yield f"The free space on the disks of broker {brokers} is unknown and was not checked."
    if proposal.interrupted:
        yield "Planning was interrupted: the plan is valid, but more time may give a better one."


def _print_unmet(proposal: Proposal, request: Request, model: ClusterModel) -> None:
    lines = unmet_lines(proposal, request, model)
    if lines:
        say("Refused:" if proposal.refused else "Not met:")
    for line in lines[:SHOWN_UNMET]:
        say(f"  {line}")
    if len(lines) > SHOWN_UNMET:
        say(f"  ... and {len(lines) - SHOWN_UNMET:,} more: -o json prints all.")


def names_meant(proposal: Proposal, model: ClusterModel) -> list[str]:
    """Say which brokers there are, and which topics are like it, for each that a goal names and the cluster lacks."""
    lines = {
        f"{name} is not a topic of the cluster. {near}"
        for unmet in proposal.unmet
        if unmet.code is UnmetCode.UNKNOWN_TOPIC and (name := unmet.topic) is not None
        if (near := did_you_mean(name, (partition.topic for partition in model.partitions)))
    }
    if any(unmet.code is UnmetCode.UNKNOWN_BROKER for unmet in proposal.unmet):
        lines.add(f"The brokers are {listed(sorted(model.broker_by_id))}.")
    return sorted(lines)


def print_directories(remarks: Sequence[DiskRemark], *, err: bool = False) -> None:
    """Print remarks about log directories."""
    for remark in remarks[:SHOWN_DIRECTORIES]:
        say(remark.text, err=err)
    if len(remarks) > SHOWN_DIRECTORIES:
        more = f"{len(remarks) - SHOWN_DIRECTORIES:,} more remarks about log directories"
        say(f"... and {more}: -o yaml prints all.", err=err)


def _shares(shares: Spread) -> tuple[str, str]:
    return f"{shares.highest:.3f}", f"{shares.lowest:.3f}"


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"
