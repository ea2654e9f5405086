"""Runs batches of scripts on the model and on a real cluster at once, and compares what both show at every rest."""

import asyncio
import itertools
import time
import uuid
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum

from drover.cluster.model import ClusterModel
from tests.reality import operations, sights
from tests.reality.operations import Codes, Operation
from tests.reality.real import POLL_S, RealCluster
from tests.reality.scripts import LETTERS, Batch, Event, Script, befall, come_to_rest, new_model

AGREE_WITHIN_S = 30.0
STAY_FOR_S = 1.0
"""For how long both must go on agreeing at the end of a batch, in case Kafka would still change something."""

_runs = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first difference of a script between model and reality."""

    batch: Batch
    script: Script
    round_number: int
    lines: tuple[str, ...]
    disturbed: bool

    def __str__(self) -> str:
        story = "\n".join(f"  {line}" for line in tell(self.batch, self.script, self.round_number))
        found = "\n".join(f"  {line}" for line in self.lines)
        return f"seed {self.batch.seed}, script {self.script.number}:\n{story}\nthen they differ:\n{found}"


def tell(batch: Batch, script: Script, last: int) -> list[str]:
    """Write a script's rounds down to the last one that matters."""
    lines: list[str] = []
    for number, (event, operation) in enumerate(zip(batch.weather, script.operations, strict=True)):
        if number <= last:
            lines += [f"{number}: {said}" for said in (event, operation) if said is not None]
    return lines


class Moment(Enum):
    """When in a round the controller may have balanced leaders."""

    BEFORE_THE_EVENT = "before the event"
    BEFORE_THE_OPERATION = "before the operation"
    AT_THE_END = "at the end"


@dataclass
class _Player:
    """One script while it is played: its model before this round, what the round consists of, and its model now."""

    script: Script
    prefix: str
    before: ClusterModel
    now: ClusterModel
    event: Event | None = None
    operation: Operation | None = None
    answer: Codes = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def begin(self, event: Event | None) -> None:
        """Begin a round with its event."""
        self.before, self.event, self.operation, self.answer = self.now, event, None, {}

    async def play(self, real: RealCluster, round_number: int) -> None:
        """Carry the round's operation out on the real cluster."""
        operation = self.script.operations[round_number]
        if operation is not None:
            self.answer = await real.apply(self.prefix, operation)
            self.operation = operation

    def compare(self, seen: sights.Sights) -> None:
        """Note how the model's round differs from what the real cluster answered and shows.

        Every five minutes the controller elects preferred leaders unasked. If nothing else explains what is seen, it
        may have done so in this round, and the model goes on with that.
        """
        self.lines = self._difference(None, seen)
        if any(self.lines) and any(not self._difference(moment, seen) for moment in Moment):
            self.lines = []

    def _difference(self, balanced: Moment | None, seen: sights.Sights) -> list[str]:
        model = deepcopy(self.before)
        answer: Codes = {}
        if balanced is Moment.BEFORE_THE_EVENT:
            model.balance_leaders()
        befall(model, self.event)
        come_to_rest(model)
        if balanced is Moment.BEFORE_THE_OPERATION:
            model.balance_leaders()
        if self.operation is not None:
            answer = operations.apply(model, self.prefix, self.operation)
            come_to_rest(model)
        if balanced is Moment.AT_THE_END:
            model.balance_leaders()
        self.now = model
        lines = sights.difference(sights.of_model(model, self.prefix, LETTERS), seen)
        if answer != self.answer:
            lines.insert(0, f"{self.operation}: the model answers {dict(answer)}, Kafka {dict(self.answer)}")
        return lines


async def run_batch(real: RealCluster, batch: Batch) -> list[Disagreement]:
    """Play a batch's scripts side by side; a script's first disagreement ends it."""
    run = f"reality-{uuid.uuid4().hex[:6]}-{next(_runs)}"
    players = [
        _Player(script, f"{run}-{script.number}-", model, model)
        for script in batch.scripts
        for model in [new_model(with_elr=batch.with_elr)]
    ]
    playing, found = list(players), list[Disagreement]()
    try:
        for number, event in enumerate(batch.weather):
            disturbed_before = real.disturbances()
            await real.befall(event)
            for player in playing:
                player.begin(event)
            await _agree(real, playing)
            agreeing = [player for player in playing if not player.lines]
            await asyncio.gather(*(player.play(real, number) for player in agreeing))
            await _agree(real, agreeing)
            if number == len(batch.weather) - 1:
                await _stay(real, [player for player in playing if not player.lines])
            disturbed = real.disturbances() != disturbed_before
            found += [
                Disagreement(batch, player.script, number, tuple(player.lines), disturbed)
                for player in playing
                if player.lines
            ]
            playing = [player for player in playing if not player.lines]
    finally:
        await real.mend()
        await real.delete([player.prefix + letter for player in players for letter in LETTERS])
    return found


async def _agree(real: RealCluster, players: Sequence[_Player]) -> None:
    """Look until every script agrees with its model; those that do not by the deadline keep their differences."""
    deadline = time.monotonic() + AGREE_WITHIN_S
    waiting = list(players)
    while waiting:
        seen = await real.sights({player.prefix: LETTERS for player in waiting})
        for player in waiting:
            player.compare(seen[player.prefix])
        waiting = [player for player in waiting if player.lines]
        if time.monotonic() > deadline:
            return
        await asyncio.sleep(POLL_S if waiting else 0)


async def _stay(real: RealCluster, players: Sequence[_Player]) -> None:
    """Look again for a while; what changes now, nobody asked for."""
    deadline = time.monotonic() + STAY_FOR_S
    while time.monotonic() < deadline:
        seen = await real.sights({player.prefix: LETTERS for player in players if not player.lines})
        for player in players:
            if not player.lines:
                player.compare(seen[player.prefix])
        await asyncio.sleep(POLL_S)
