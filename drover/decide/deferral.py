"""An index of the deferred commands of a cluster that may be decided; waiting costs nothing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from drover.events.codec import decode_deferred
from drover.events.commands import AnyCommand
from drover.state.scheduling import DeferredCommand, SchedulingState

MAX_DEFERRAL_MS = 30_000
# What is looked for before one batch: what that batch is likely to decide.
DUE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Released:
    """A deferred command whose turn has come."""

    command: AnyCommand
    deferred: DeferredCommand


def deferred_commands(state: SchedulingState) -> dict[str, AnyCommand]:
    """Read the deferred commands of a cluster, by id."""
    return {name: decode_deferred(one.payload) for name, one in state.deferred.items()}


@dataclass(slots=True)
class Deferral:
    """The deferred commands of one cluster by what they wait for; each is decoded once.

    `bytes` is what they take in the log and in the state.
    """

    state: SchedulingState
    bytes: int = 0
    _commands: dict[str, AnyCommand] = field(default_factory=dict)
    _missing: dict[str, set[str]] = field(default_factory=dict)
    _waiting_for: dict[str, dict[str, None]] = field(default_factory=dict)
    # Commands that wait for nothing any more, the oldest first.
    _ready: dict[str, None] = field(default_factory=dict)
    _is_counted: bool = True

    def begin(self) -> None:
        """Read the deferred commands of the log; what they wait for is found out later."""
        self._commands = deferred_commands(self.state)
        self.bytes = sum(one.size for one in self.state.deferred.values())
        self._is_counted = not self._commands

    def count(self, undecided: Callable[[AnyCommand], tuple[str, ...]]) -> None:
        """Find out what each waits for, once after an ownership has begun."""
        if self._is_counted:
            return
        self._is_counted = True
        for name, command in self._commands.items():
            self._wait(name, undecided(command))

    def defer(self, command: AnyCommand, size: int, undecided: tuple[str, ...]) -> None:
        """Defer a command of so many bytes until those are decided."""
        self._commands[command.id] = command
        self.bytes += size
        self._wait(command.id, undecided)

    def _wait(self, name: str, undecided: tuple[str, ...]) -> None:
        self._missing[name] = set(undecided)
        for other in undecided:
            self._waiting_for.setdefault(other, {})[name] = None
        if not undecided:
            self._ready[name] = None

    def decided(self, name: str) -> None:
        """Note that a command of this cluster was decided, deferred or not."""
        for waiting in self._waiting_for.pop(name, {}):
            missing = self._missing.get(waiting)
            if missing is not None:
                missing.discard(name)
                if not missing:
                    self._ready[waiting] = None

    def released(self, name: str, size: int) -> None:
        """Drop a command of so many bytes that is being decided."""
        del self._commands[name]
        self.bytes -= size
        for other in self._missing.pop(name):
            self._waiting_for.get(other, {}).pop(name, None)
        self._ready.pop(name, None)

    @property
    def commands(self) -> Mapping[str, AnyCommand]:
        """The deferred commands by id, as they were sent."""
        return self._commands

    @property
    def has_ready(self) -> bool:
        """Whether a command's turn has come, or may have."""
        return bool(self._ready) or not self._is_counted

    def ready(self) -> Iterator[Released]:
        """Yield those whose turn has come, including those that become ready meanwhile."""
        done: set[str] = set()
        while pending := [name for name in self._ready if name not in done]:
            for name in pending:
                done.add(name)
                if name in self._ready:
                    yield Released(self._commands[name], self.state.deferred[name])

    def due(self) -> Iterator[Released]:
        """Yield those that the next batch may decide: about as many as fit into one."""
        size = 0
        for released in self.ready():
            yield released
            size += released.deferred.size
            if size >= DUE_BYTES:
                return

    def expired(self, at_ms: int) -> Iterator[tuple[Released, tuple[str, ...]]]:
        """Yield those that have waited too long, the oldest first, with what was not decided."""
        for name, deferred in tuple(self.state.deferred.items()):
            # One that began in a future that was put right has waited long enough.
            if 0 <= at_ms - deferred.since_ms < MAX_DEFERRAL_MS:
                return
            if name not in self._ready:
                command = self._commands[name]
                missing = self._missing[name]
                yield Released(command, deferred), tuple(one for one in dict.fromkeys(command.after) if one in missing)

    def next_refusal_ms(self) -> int | None:
        """Tell when (log time) the first one has waited too long; None if none waits."""
        first = next(iter(self.state.deferred.values()), None)
        return None if first is None else first.since_ms + MAX_DEFERRAL_MS
