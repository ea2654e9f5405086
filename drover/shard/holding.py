"""Commands that wait for others: held in the log, so that cursors pass them, until those they name are decided."""

from collections.abc import Iterator, Mapping

from drover.reassignment.decision import Decision, refuse
from drover.reassignment.state import ClusterState
from drover.reassignment.waiting import HeldCommand
from drover.shard.deciding import Place, Position, Register, conclude, must_be_seen, outcome_of, worth_a_look
from drover.shard.fold import ShardState
from drover.shard.page import Page
from events.codec import Malformed, command_digest, decode_command, encode_command
from events.commands import AnyCommand
from events.partitions import TopicPartition
from events.refusals import RefusalCode
from events.waiting import CommandHeld, CommandReleased

HOLD_MS = 30_000
# What is held stands in the state: somebody who only ever names commands that never come must not fill it.
MAX_HELD = 1000


def hold(page: Page, command: AnyCommand, position: Position, digest: bytes) -> int:
    """Let a command wait, its outcome `held` for now; returns how many bytes that adds to the record."""
    if len(page.ahead.cluster(command.cluster).held) >= MAX_HELD:
        detail = f"{MAX_HELD} commands wait for others in {command.cluster} already: send it again under a new id"
        refused = refuse(RefusalCode.AFTER_UNDECIDED, detail)
        page.outcomes.append(outcome_of(position, command, refused, digest=digest))
        return 0
    payload = encode_command(command)
    page.outcomes.append(outcome_of(position, command, Decision(), verdict="held", digest=digest))
    page.write(
        CommandHeld(
            cluster=command.cluster, id=command.id, payload=payload, topic=position.topic, offset=position.offset
        )
    )
    return len(payload)


def release(
    page: Page,
    cluster: str,
    place: Place,
    register: Register,
    looked_for: frozenset[tuple[str, str]],
    unavailable: str | None,
) -> None:
    """Decide each held command of a cluster whose turn has come, oldest first; refuse what has waited too long.

    `looked_for` are the commands, by cluster and id, for which the cluster was looked at before this record was begun:
    one that needs a look and is not among them waits for the next record.
    """
    state = page.ahead.clusters.get(cluster)
    if state is None:
        return
    for name, held in tuple(state.held.items()):
        command = _read(held)
        undecided = register.undecided(command, state)
        position, digest = Position(held.topic, held.offset), command_digest(command)
        if undecided:
            if page.at_ms - held.since_ms >= HOLD_MS:
                _refuse(page, command, position, digest, undecided)
        elif _may_be_decided(page, command, place, is_looked_for=(cluster, name) in looked_for):
            page.write(CommandReleased(cluster=cluster, id=name))
            conclude(page, command, position, place, digest, unavailable)


def _may_be_decided(page: Page, command: AnyCommand, place: Place, *, is_looked_for: bool) -> bool:
    if command.cluster not in place.clusters:
        return True
    state = page.ahead.cluster(command.cluster)
    if not worth_a_look(command, state):
        return True
    # What has ended in this very record must be seen again.
    return is_looked_for and not any((command.cluster, key) in page.ended for key in must_be_seen(command, state))


def _refuse(page: Page, command: AnyCommand, position: Position, digest: bytes, undecided: tuple[str, ...]) -> None:
    detail = (
        f"{', '.join(undecided)} in `after` was not decided within {HOLD_MS // 1000} s: send it first, then this "
        "command again under a new id"
    )
    page.write(CommandReleased(cluster=command.cluster, id=command.id))
    refused = refuse(RefusalCode.AFTER_UNDECIDED, detail)
    page.outcomes.append(outcome_of(position, command, refused, digest=digest))


def due(ahead: ShardState, register: Register, place: Place) -> dict[tuple[str, str], tuple[TopicPartition, ...]]:
    """List the held commands whose turn has come and what must be looked at for each, by cluster and id."""
    found: dict[tuple[str, str], tuple[TopicPartition, ...]] = {}
    for state in ahead.clusters.values():
        if state.name not in place.clusters:
            continue
        for name, command in _held(state):
            keys = worth_a_look(command, state)
            if keys and not register.undecided(command, state):
                found[state.name, name] = keys
    return found


def next_refusal_ms(clusters: Mapping[str, ClusterState]) -> int | None:
    """Tell when (log time) the first held command has waited too long; None if none is held."""
    return min((held.since_ms + HOLD_MS for state in clusters.values() for held in state.held.values()), default=None)


def _held(state: ClusterState) -> Iterator[tuple[str, AnyCommand]]:
    for name, held in state.held.items():
        yield name, _read(held)


def _read(held: HeldCommand) -> AnyCommand:
    command = decode_command(held.payload)
    assert not isinstance(command, Malformed), f"what is held was read before: {command}"
    return command
