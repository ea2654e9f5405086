"""Seeded random scripts: a batch shares its weather (what happens to brokers), each script has topics of its own.

A script is written with a model beside it, so that it mostly asks for what is interesting at that moment. One operation
a round, and the cluster comes to rest between two: what would depend on who is quicker is never in a script. Moves are
held back by dead destinations, not by slow ones.
"""

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import permutations

from drover.cluster.throttle_lists import LEADER_REPLICAS
from drover.events.partitions import TopicPartition
from drover.events.traits import Traits
from drover.testing import controller_model
from drover.testing.controller_model import Election, Partition
from drover.testing.model import ClusterModel
from drover.testing.model_state import MIN_ISR, UNCLEAN_ALLOWED
from drover.traits import LATEST
from tests.reality.operations import Alter, Create, Delete, Elect, Grow, Operation, Place, Replicas, Throttle, apply

BROKERS = (1, 2, 3, 4)
ROUNDS = 14
LETTERS = ("a", "b")
UNKNOWN_BROKER = 9
QUIET_STEPS = 20
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill a broker (SIGKILL) and wait until it is fenced."""

    broker: int


@dataclass(frozen=True, slots=True)
class Start:
    """Bring a broker back and wait until every other one knows it."""

    broker: int


@dataclass(frozen=True, slots=True)
class RestartController:
    """Kill the controller and start it again."""


Event = Kill | Start | RestartController
Weather = tuple[Event | None, ...]
"""What happens before the operations of each round."""


@dataclass(frozen=True, slots=True)
class Script:
    """What is done to the topics of one script, round by round; it may end before its batch does."""

    number: int
    operations: tuple[Operation | None, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Scripts that run side by side under one weather."""

    seed: int
    weather: Weather
    scripts: tuple[Script, ...]
    traits: Traits = LATEST


def new_model(traits: Traits) -> ClusterModel:
    """Return the model of the cluster that scripts run on."""
    return ClusterModel(dict.fromkeys(BROKERS), traits=traits)


def befall(model: ClusterModel, event: Event | None) -> None:
    """Let an event happen to the model."""
    match event:
        case Kill(broker):
            model.stop_broker(broker)
        case Start(broker):
            model.start_broker(broker)
        case RestartController():
            model.stop_controller()
            model.start_controller()
        case None:
            return


def come_to_rest(model: ClusterModel) -> None:
    """Let time pass until nothing changes any more."""
    for _ in range(QUIET_STEPS):
        before = dict(model.each_partition())
        model.advance(1000)
        if before == dict(model.each_partition()):
            return
    raise AssertionError("the model never comes to rest")


def make_batch(seed: int, size: int, traits: Traits = LATEST) -> Batch:
    """Return the batch of a seed; a script depends on the seed, the traits and its own number only."""
    weather = make_weather(random.Random(f"weather {seed}"))
    scripts = tuple(make_script(seed, number, weather, traits) for number in range(size))
    return Batch(seed, weather, scripts, traits)


def make_weather(chance: random.Random) -> Weather:
    """Let one to three brokers die and come back in any order, and sometimes the controller be restarted."""
    weather: list[Event | None] = [None] * ROUNDS
    doomed = chance.sample(BROKERS, chance.choice([1, 2, 2, 2, 3]))
    slots = sorted(chance.sample(range(2, ROUNDS), 2 * len(doomed)))
    dead: list[int] = []
    waiting = list(doomed)
    for slot in slots:
        if waiting and (not dead or chance.random() < 0.6):
            dead.append(waiting.pop())
            weather[slot] = Kill(dead[-1])
        else:
            weather[slot] = Start(dead.pop(chance.randrange(len(dead))))
    calm = [slot for slot in range(2, ROUNDS) if weather[slot] is None]
    if calm and chance.random() < 0.4:
        weather[chance.choice(calm)] = RestartController()
    return tuple(weather)


def make_script(seed: int, number: int, weather: Weather, traits: Traits) -> Script:
    """Write one script with a model beside it."""
    author = Author(random.Random(f"script {seed} {number}"), new_model(traits))
    operations: list[Operation | None] = []
    for place, event in enumerate(weather):
        befall(author.model, event)
        if depends_on_speed(author.model):
            break
        come_to_rest(author.model)
        for _attempt in range(ATTEMPTS):
            operation = author.first(place) if place < len(LETTERS) else author.next()
            tried = deepcopy(author.model)
            apply(tried, "", operation)
            if not depends_on_speed(tried) and not is_poisoned(tried):
                come_to_rest(tried)
                author.model = tried
                operations.append(operation)
                break
        else:
            operations.append(None)
    return Script(number, tuple(operations))


def depends_on_speed(model: ClusterModel) -> bool:
    """Whether what a cluster shows at rest depends on which replica is back in sync first.

    The end of a move takes the ISR of its moment, of which the ELR remembers those that the move removes.
    """
    ends = {_end_of(model, order) for order in permutations(BROKERS)} if _is_crowded(model) else set()
    return len(ends) > 1


def is_poisoned(model: ClusterModel) -> bool:
    """Whether a partition would bring the whole cluster down, and every script of the batch with it."""
    return any(controller_model.is_poisoned(state) for _, state in model.each_of(model.imbalanced))


def _is_crowded(model: ClusterModel) -> bool:
    return any(
        state.leader is not None and state.removing and len(frozenset(state.replicas) - frozenset(state.isr)) > 1
        for _, state in model.each_of(model.moving)
    )


def _end_of(model: ClusterModel, order: Replicas) -> tuple[tuple[TopicPartition, Partition], ...]:
    copy = deepcopy(model)
    for partition, state in copy.each_of(copy.incomplete):
        for broker in order:
            if state.leader is not None and copy.brokers[broker].alive:
                copy.join_isr(partition, broker)
    ends = dict(copy.each_partition())
    return tuple((partition, replace(end, isr=tuple(sorted(end.isr)))) for partition, end in ends.items())


class Author:
    """Chooses a script's next operation by what the model shows now."""

    def __init__(self, chance: random.Random, model: ClusterModel) -> None:
        self.chance = chance
        self.model = model

    def first(self, round_number: int) -> Operation:
        """Create the topic of one of the first rounds."""
        return self._create(LETTERS[round_number])

    def next(self) -> Operation:
        """Choose any operation, the interesting ones more often."""
        missing = [letter for letter in LETTERS if letter not in self.model.topics]
        if missing:
            return self._create(missing[0])
        choices: list[tuple[int, Callable[[], Operation]]] = [
            (20, self._alter),
            (3, self._several),
            (3, self._elect),
            (2, self._grow),
            (1, self._delete),
            (1, self._throttle),
        ]
        return self.chance.choices([make for _, make in choices], [weight for weight, _ in choices])[0]()

    def _create(self, letter: str) -> Operation:
        factor = self.chance.choice([1, 2, 2, 3, 3, 4])
        lists = tuple(self._list(factor) for _ in range(self.chance.choice([1, 2, 3])))
        configs = {}
        if self.chance.random() < 0.6:
            configs[MIN_ISR] = str(self.chance.choice([1, 2, 2, 3]))
        if self.chance.random() < 0.3:
            configs[UNCLEAN_ALLOWED] = "true"
        return Create(letter, lists, tuple(sorted(configs.items())))

    def _list(self, factor: int) -> Replicas:
        return tuple(self.chance.sample(BROKERS, factor))

    def _places(self) -> list[Place]:
        return [Place(partition.topic, partition.partition) for partition, _ in self.model.each_partition()]

    def _movable(self) -> list[Place]:
        """Leave out those whose size decides what other partitions do, which would depend on who is quicker."""
        return [place for place in self._places() if place.partition or not self._sizes_matter(place.topic)]

    def _sizes_matter(self, letter: str) -> bool:
        """Whether the effective min ISR of a topic's partitions depends on the number of partition 0's replicas."""
        return self.model.min_isr(letter) > 1 and len(self.model.topics[letter].partitions) > 1

    def _alter(self) -> Operation:
        places = self._movable()
        return Alter((self._request(self.chance.choice(places)),)) if places else self._elect()

    def _several(self) -> Operation:
        places = self._movable()
        chosen = self.chance.sample(places, min(len(places), self.chance.choice([2, 3, 4])))
        requests = [self._request(place) for place in chosen]
        if self.chance.random() < 0.5:
            unknown = self.chance.choice([Place("a", 77), Place("none", 0)])
            requests.append((unknown, self.chance.choice([None, (1, 2)])))
        return Alter(tuple(requests))

    def _request(self, place: Place) -> tuple[Place, Replicas | None]:
        state = self.model.partition(TopicPartition(place.topic, place.partition))
        assert state is not None, "places exist"
        if state.moving and self.chance.random() < 0.4:
            return place, None
        if self.chance.random() < 0.05:
            return place, None
        if self.chance.random() < 0.07:
            return place, self.chance.choice([(), (1, 1), (2, UNKNOWN_BROKER), (UNKNOWN_BROKER, 3, 3)])
        kinds: list[Callable[[], Replicas]] = [
            lambda: self._list(self.chance.choice([1, 2, 3, 3, 4])),
            lambda: self._list(self.chance.choice([1, 2, 3, 3, 4])),
            lambda: tuple(self.chance.sample(state.replicas, len(state.replicas))),
            lambda: tuple(self.chance.sample(state.original, len(state.original))) or state.replicas,
            lambda: tuple(self.chance.sample(state.replicas, self.chance.randint(1, len(state.replicas)))),
            lambda: (*state.replicas, *(broker for broker in BROKERS if broker not in state.replicas)),
        ]
        return place, self.chance.choice(kinds)()

    def _elect(self) -> Operation:
        places = self._places()
        if self.chance.random() < 0.2:
            places.append(Place("a", 77))
        chosen = self.chance.sample(places, min(len(places), self.chance.choice([1, 2, 4])))
        election = self.chance.choice([Election.PREFERRED, Election.PREFERRED, Election.UNCLEAN])
        return Elect(tuple(chosen), election)

    def _grow(self) -> Operation:
        letter = self.chance.choice(LETTERS)
        factors = {len(state.replicas) for state in self.model.topics[letter].partitions.values()}
        if len(factors) > 1 or self.model.min_isr(letter) > 1:
            return self._alter()  # Kafka goes by one of the partitions, and nothing says by which
        if self.model.traits.zookeeper_mode and not self._is_led(letter):
            return self._alter()  # Kafka answers only when every partition has a leader
        factor = min(factors)
        if self.chance.random() < 0.2:
            factor = self.chance.choice([1, 2, 3, 4])
        return Grow(letter, tuple(self._list(factor) for _ in range(self.chance.choice([1, 1, 2]))))

    def _delete(self) -> Operation:
        letter = self.chance.choice(LETTERS)
        if LEADER_REPLICAS in self.model.topics[letter].configs:
            return self._alter()  # a broker that is started later shows the lists on the next topic of that name
        if self.model.traits.zookeeper_mode and not self._lives(letter):
            return self._alter()  # the name stays taken until all of them are back, which the model does not know
        return Delete(letter)

    def _is_led(self, letter: str) -> bool:
        return all(state.leader is not None for state in self.model.topics[letter].partitions.values())

    def _lives(self, letter: str) -> bool:
        """Whether every broker with a replica of the topic is alive."""
        partitions = self.model.topics[letter].partitions.values()
        return all(self.model.brokers[broker].alive for state in partitions for broker in state.replicas)

    def _throttle(self) -> Operation:
        letter = self.chance.choice(LETTERS)
        numbers = sorted(self.model.topics[letter].partitions)
        entries = {f"{self.chance.choice(numbers)}:{self.chance.choice(BROKERS)}" for _ in range(3)}
        return Throttle(letter, tuple(sorted(entries)), on=self.chance.random() < 0.7)
