"""Makes a disagreement small: plays the script again without this or that operation and keeps what still disagrees."""

from collections.abc import Iterable, Sequence
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
    model = new_model(batch.traits)
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


async def shrunk(real: RealCluster, found: Disagreement, agree_within_s: float) -> Disagreement | None:
    """Return the smallest disagreement that was found; None when the script agrees this time.

    All attempts of a pass run side by side under the same weather, so a pass takes no longer than one script.
    """
    smallest: Disagreement | None = None
    base = tuple(place for place in rounds_of(found.script) if place <= found.round_number)
    candidates = [base]
    for _ in range(PASSES):
        playable = [one for one in candidates if is_playable(kept(found.batch, found.script.number, one))]
        still = await run_batch(real, _side_by_side(found, playable), agree_within_s=agree_within_s) if playable else []
        if not still:
            return smallest
        least = min(still, key=lambda one: len(rounds_of(one.script)))
        smallest = replace(least, batch=found.batch, script=Script(found.script.number, least.script.operations))
        failing = {playable[one.script.number] for one in still}
        needless = [place for place in base if _without(base, place) in failing]
        combined = tuple(place for place in base if place not in needless)
        base = tuple(place for place in rounds_of(smallest.script) if place <= smallest.round_number)
        candidates = list(dict.fromkeys([combined, *(_without(base, place) for place in base)]))
    return smallest


def _side_by_side(found: Disagreement, candidates: Sequence[tuple[int, ...]]) -> Batch:
    """Return one batch of what is left of a script in each candidate; scripts are numbered by their candidates."""
    batches = [kept(found.batch, found.script.number, candidate) for candidate in candidates]
    longest = max((batch.weather for batch in batches), key=len)
    scripts = tuple(Script(number, batch.scripts[0].operations) for number, batch in enumerate(batches))
    return Batch(found.batch.seed, longest, scripts, found.batch.traits)


def _without(rounds: tuple[int, ...], gone: int) -> tuple[int, ...]:
    return tuple(place for place in rounds if place != gone)


async def report(real: RealCluster, found: Disagreement, *, agree_within_s: float = AGREE_WITHIN_S) -> str:
    """Tell of a disagreement: as it was, as small as it could be made, and how to see it again."""
    smallest = await shrunk(real, found, agree_within_s)
    if smallest is None:
        return f"{found}\nThe script agreed when it was played again.\nPlay it once more: {command(found)}"
    return f"{found}\n\nThe least that still disagrees: {smallest}\nPlay it again: {command(smallest)}"


def command(found: Disagreement) -> str:
    """Return the command that plays a disagreement again."""
    rounds = ",".join(str(place) for place in rounds_of(found.script) if place <= found.round_number)
    without_elr = "" if found.batch.traits.with_elr else " --without-elr"
    return f"python -m tests.reality {found.batch.seed} {found.script.number} --rounds {rounds}{without_elr}"
