"""Runs batches of scripts on the model and on a real cluster at once, and compares what both show at every rest."""

import asyncio
import itertools
import time
import uuid
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum

from drover.events.traits import Traits
from drover.testing.model import ClusterModel
from tests.reality import operations, sights
from tests.reality.operations import Codes, Operation
from tests.reality.real import POLL_S, RealCluster
from tests.reality.scripts import BROKERS, LETTERS, Batch, Event, Script, befall, come_to_rest, new_model

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
    for number, (event, operation) in enumerate(zip(batch.weather, script.operations, strict=False)):
        if number <= last:
            lines += [f"{number}: {said}" for said in (event, operation) if said is not None]
    return lines


class Moment(Enum):
    """When in a round the controller may have balanced leaders, as it does every five minutes unasked."""

    NEVER = "never"
    BEFORE_THE_EVENT = "before the event"
    BEFORE_THE_OPERATION = "before the operation"
    AT_THE_END = "at the end"


@dataclass(frozen=True, slots=True)
class Balance:
    """A leader balance that the controller may have run in a round: for these preferred leaders, or for all (None)."""

    moment: Moment
    brokers: tuple[int, ...] | None = None


def balances(traits: Traits) -> tuple[Balance, ...]:
    """List the balances that may have run, the likeliest first; in ZooKeeper mode Kafka balances broker by broker."""
    subsets: list[tuple[int, ...] | None] = [None]
    if traits.zookeeper_mode:
        subsets += [some for size in range(1, len(BROKERS)) for some in itertools.combinations(BROKERS, size)]
    moments = [moment for moment in Moment if moment is not Moment.NEVER]
    return (Balance(Moment.NEVER), *(Balance(moment, some) for some in subsets for moment in moments))


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the model makes of a round if leaders are balanced at one moment of it."""

    model: ClusterModel
    answer: Codes
    sights: sights.Sights


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
    expectations: dict[Balance, Expectation] = field(default_factory=dict)

    def begin(self, event: Event | None) -> None:
        """Begin a round with its event."""
        self.before, self.event, self.operation, self.answer, self.expectations = self.now, event, None, {}, {}

    async def play(self, real: RealCluster, round_number: int) -> None:
        """Carry the round's operation out on the real cluster."""
        operation = self.script.operations[round_number]
        if operation is not None:
            self.answer = await real.apply(self.prefix, operation)
            self.operation, self.expectations = operation, {}

    def compare(self, seen: sights.Sights) -> None:
        """Note how the model's round differs from what the real cluster answered and shows.

        If nothing else explains what is seen, leaders may have been balanced in this round; the model goes on with it.
        """
        for balance in balances(self.now.traits):
            expected = self._expected(balance)
            lines = sights.difference(expected.sights, seen)
            if expected.answer != self.answer:
                answers = f"the model answers {dict(expected.answer)}, Kafka {dict(self.answer)}"
                lines.insert(0, f"{self.operation}: {answers}")
            if balance.moment is Moment.NEVER or not lines:
                self.lines, self.now = lines, expected.model
            if not lines:
                return

    def _expected(self, balance: Balance) -> Expectation:
        if balance in self.expectations:
            return self.expectations[balance]
        model = deepcopy(self.before)
        answer: Codes = {}
        if balance.moment is Moment.BEFORE_THE_EVENT:
            model.balance_leaders(balance.brokers)
        befall(model, self.event)
        come_to_rest(model)
        if balance.moment is Moment.BEFORE_THE_OPERATION:
            model.balance_leaders(balance.brokers)
        if self.operation is not None:
            answer = operations.apply(model, self.prefix, self.operation)
            come_to_rest(model)
        if balance.moment is Moment.AT_THE_END:
            model.balance_leaders(balance.brokers)
        shown = sights.of_model(model, self.prefix, LETTERS)
        self.expectations[balance] = Expectation(model, answer, shown)
        return self.expectations[balance]


async def run_batch(real: RealCluster, batch: Batch, *, agree_within_s: float = AGREE_WITHIN_S) -> list[Disagreement]:
    """Play a batch's scripts side by side; a script's first disagreement ends it."""
    run = f"reality-{uuid.uuid4().hex[:6]}-{next(_runs)}"
    players = [
        _Player(script, f"{run}-{script.number}-", model, model)
        for script in batch.scripts
        for model in [new_model(batch.traits)]
    ]
    playing, found = list(players), list[Disagreement]()
    try:
        for number, event in enumerate(batch.weather):
            disturbed_before = real.disturbances()
            await real.befall(event)
            playing = [player for player in playing if number < len(player.script.operations)]
            for player in playing:
                player.begin(event)
            await _agree(real, playing, agree_within_s)
            agreeing = [player for player in playing if not player.lines]
            await asyncio.gather(*(player.play(real, number) for player in agreeing))
            await _agree(real, agreeing, agree_within_s)
            await _stay(real, [player for player in agreeing if number == len(player.script.operations) - 1])
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


async def _agree(real: RealCluster, players: Sequence[_Player], within_s: float) -> None:
    """Look until every script agrees with its model; those that do not by the deadline keep their differences."""
    deadline = time.monotonic() + within_s
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
    while (staying := [player for player in players if not player.lines]) and time.monotonic() < deadline:
        seen = await real.sights({player.prefix: LETTERS for player in staying})
        for player in staying:
            player.compare(seen[player.prefix])
        await asyncio.sleep(POLL_S)
