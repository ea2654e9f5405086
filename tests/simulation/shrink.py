"""Makes a failing script short: whatever can be left out without another failure than before is left out."""

from collections.abc import Callable, Sequence
from itertools import groupby

from msgspec.structs import replace

from tests.simulation.actions import EVERYDAY
from tests.simulation.run import Finished, Script, run_script

MAX_RUNS = 1500

Actions = Sequence[list[object]]
Fails = Callable[[Script], bool]


class _Budget:
    """Runs a script if runs are left, and says whether it fails as the first one did."""

    def __init__(self, rule: str | None, run: Callable[[Script], Finished]) -> None:
        self.left = MAX_RUNS
        self._rule = rule
        self._run = run

    def fails(self, script: Script) -> bool:
        """Whether it fails in the same way; no when no runs are left."""
        if self.left <= 0:
            return False
        self.left -= 1
        return self._run(script).rule == self._rule


def shrink(script: Script, run: Callable[[Script], Finished] = run_script) -> Script:
    """Return a script that breaks the same rule with as few actions as can be found in a bounded number of runs."""
    budget = _Budget(run(script).rule, run)
    before: Script | None = None
    while before != script and budget.left > 0:
        before = script
        script = _fewer(script, budget.fails)
        script = _coarser(script, budget.fails)
        script = _plainer(script, budget.fails)
    return script


def _with(script: Script, actions: Actions) -> Script:
    return replace(script, actions=tuple(actions))


def _fewer(script: Script, fails: Fails) -> Script:
    """Delta debugging: leave out halves, quarters and so on down to single actions."""
    size = max(1, len(script.actions) // 2)
    while True:
        start = 0
        while start < len(script.actions):
            shorter = _with(script, (*script.actions[:start], *script.actions[start + size :]))
            if fails(shorter):
                script = shorter
            else:
                start += size
        if size == 1:
            return script
        size = max(1, size // 2)


def _coarser(script: Script, fails: Fails) -> Script:
    """Put one `run` of the same time for a stretch in which nothing special happens."""
    stretches = [
        (is_everyday, list(stretch)) for is_everyday, stretch in groupby(script.actions, lambda it: it[0] in EVERYDAY)
    ]
    for place, (is_everyday, stretch) in enumerate(stretches):
        if not is_everyday or len(stretch) < 2:
            continue
        duration_ms = sum(int(str(action[1])) for action in stretch if action[0] in {"tick", "run"})
        for tried_ms in dict.fromkeys((duration_ms, 1000, 100)):
            coarse = [*stretches[:place], (True, [["run", tried_ms]]), *stretches[place + 1 :]]
            candidate = _with(script, [action for _, actions in coarse for action in actions])
            if fails(candidate):
                stretches, script = coarse, candidate
                break
    return script


def _plainer(script: Script, fails: Fails) -> Script:
    """Name fewer partitions in each alter, and make the world smaller."""
    for place, action in enumerate(script.actions):
        targets = action[1] if action[0] == "alter" else None
        while isinstance(targets, list) and len(targets) > 1:
            fewer = next(
                (
                    [*targets[:number], *targets[number + 1 :]]
                    for number in range(len(targets))
                    if fails(_targeting(script, place, [*targets[:number], *targets[number + 1 :]]))
                ),
                None,
            )
            if fewer is None:
                break
            script, targets = _targeting(script, place, fewer), fewer
    for smaller in ({"workers": 2}, {"copy_bytes_per_second": None}, {"session_timeout_ms": 0}, {"clusters": 1}):
        candidate = replace(script, settings=replace(script.settings, **smaller))
        if candidate != script and fails(candidate):
            script = candidate
    return script


def _targeting(script: Script, place: int, targets: list[object]) -> Script:
    action = script.actions[place]
    changed = [action[0], targets, *action[2:]]
    return _with(script, (*script.actions[:place], changed, *script.actions[place + 1 :]))
