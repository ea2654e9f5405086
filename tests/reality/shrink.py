"""Makes a disagreement small: plays the script again without this or that operation and keeps what still disagrees."""

from collections.abc import Iterable
from dataclasses import replace

from tests.reality.operations import apply
from tests.reality.real import RealCluster
from tests.reality.recorder import Disagreement, run_batch
from tests.reality.scripts import Batch, Script, befall, come_to_rest, depends_on_speed, is_poisoned, new_model

PASSES = 4
AGREE_WITHIN_S = 5.0


def kept(batch: Batch, number: int, rounds: Iterable[int]) -> Batch:
    """Return a batch of one script that has only the operations of these rounds; it ends with the last one."""
    keep = frozenset(rounds)
    last = max(keep, default=-1)
    script = next(script for script in batch.scripts if script.number == number)
    operations = tuple(
        operation if place in keep else None for place, operation in enumerate(script.operations[: last + 1])
    )
    return replace(batch, weather=batch.weather[: last + 1], scripts=(Script(number, operations),))


def rounds_of(script: Script) -> tuple[int, ...]:
    """Return the rounds that have an operation."""
    return tuple(place for place, operation in enumerate(script.operations) if operation is not None)


def is_playable(batch: Batch) -> bool:
    """Whether a batch of one script is about topics that exist, and never depends on who is quicker."""
    model = new_model(with_elr=batch.with_elr)
    for event, operation in zip(batch.weather, batch.scripts[0].operations, strict=True):
        befall(model, event)
        if depends_on_speed(model):
            return False
        come_to_rest(model)
        if operation is None:
            continue
        try:
            apply(model, "", operation)
        except KeyError:
            return False  # it grows or deletes a topic that a dropped operation would have made
        if depends_on_speed(model) or is_poisoned(model):
            return False
        come_to_rest(model)
    return True


async def shrunk(real: RealCluster, found: Disagreement) -> Disagreement | None:
    """Return the smallest disagreement that was found; None when the script agrees this time.

    All attempts of a pass run side by side under the same weather, so a pass takes no longer than one script.
    """
    smallest: Disagreement | None = None
    rounds = tuple(place for place in rounds_of(found.script) if place <= found.round_number)
    candidates = [rounds]
    for _ in range(PASSES):
        batches = [kept(found.batch, found.script.number, candidate) for candidate in candidates]
        playable = [batch for batch in batches if is_playable(batch)]
        if not playable:
            return smallest
        longest = max((batch.weather for batch in playable), key=len)
        scripts = tuple(Script(place, batch.scripts[0].operations) for place, batch in enumerate(playable))
        together = Batch(found.batch.seed, longest, scripts, found.batch.with_elr)
        still = await run_batch(real, together, agree_within_s=AGREE_WITHIN_S)
        if not still:
            return smallest
        least = min(still, key=lambda one: len(rounds_of(one.script)))
        smallest = replace(least, batch=found.batch, script=Script(found.script.number, least.script.operations))
        rounds = tuple(place for place in rounds_of(smallest.script) if place <= smallest.round_number)
        needless = {
            next(iter(set(rounds) - set(rounds_of(one.script))), None)
            for one in still
            if len(rounds_of(one.script)) == len(rounds) - 1
        }
        candidates = [tuple(place for place in rounds if place not in needless)] if needless else []
        candidates += [tuple(place for place in rounds if place != dropped) for dropped in rounds]
    return smallest


async def report(real: RealCluster, found: Disagreement) -> str:
    """Tell of a disagreement: as it was, as small as it could be made, and how to see it again."""
    smallest = await shrunk(real, found)
    if smallest is None:
        return f"{found}\nThe script agreed when it was played again.\nPlay it once more: {command(found)}"
    return f"{found}\n\nThe least that still disagrees: {smallest}\nPlay it again: {command(smallest)}"


def command(found: Disagreement) -> str:
    """Return the command that plays a disagreement again."""
    rounds = ",".join(str(place) for place in rounds_of(found.script) if place <= found.round_number)
    without_elr = "" if found.batch.with_elr else " --without-elr"
    return f"python -m tests.reality {found.batch.seed} {found.script.number} --rounds {rounds}{without_elr}"
