"""Commands from the page: their effect is shown first, an authenticated user sends them, and the log answers."""

import secrets
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import structlog
from aiohttp import web

from drover.client.answers import Answer, OutcomeMissingError
from drover.client.client import Client
from drover.client.views.answer_rows import answer_row
from drover.errors import DroverError, LogUnavailableError
from drover.events.codec import Malformed
from drover.events.commands import AnyCommand
from drover.events.partitions import TopicPartition
from drover.journal.connection import LogConnection
from drover.web.bodies import Reply, read_body
from drover.web.identity import Authorizer, Denied
from drover.web.page_commands import EVERYTHING, NO_REASON, SHOWN_FIRST, is_same, needs_word, read_command
from drover.web.page_state import PageState
from drover.web.trials import Trial, trial

_log = structlog.get_logger(__name__)

OUTCOME_TIMEOUT_S = 20.0
# The most commands being sent at a time; each has a connection to the log and waits for its outcome.
MAX_SENDING = 8
MAX_TRIALS_KEPT = 256
# The most partitions of all remembered trials together; the last trial is always kept, and the user of whom most is
# remembered loses the oldest.
MAX_PARTITIONS_KEPT = 200_000
MAX_BODY_BYTES = 64 * 1024
_NOTHING: frozenset[TopicPartition] = frozenset()

Send = Callable[[AnyCommand], Awaitable[Answer]]


class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request: a command of the contract without `by`, the id of the shown trial, and the typed word."""

    command: dict[str, Any]
    trial: str = ""
    word: str = ""


@dataclass(frozen=True, slots=True)
class _Shown:
    """The partitions that a command would touch, as its requester has seen them."""

    command: AnyCommand
    keys: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that may write."""

    body: _Body
    command: AnyCommand


@dataclass(slots=True)
class Writes:
    """Answers the page's trials and commands; `send` returns what the log records, or raises as a client does."""

    page: PageState
    authorizer: Authorizer
    send: Send
    _shown: OrderedDict[str, _Shown] = field(default_factory=OrderedDict)
    _partitions_shown: int = 0
    _sending: int = 0

    async def answer_trial(self, request: web.Request) -> Reply:
        """Predict the effect of a command without sending it. Raises `ValueError` for an invalid body."""
        asked = await self._read(request, {"id": "trial", "reason": NO_REASON})
        if isinstance(asked, Denied):
            return asked.status, {"error": asked.why}
        return 200, self._show(asked.command, self._trial(asked.command))

    async def answer_command(self, request: web.Request) -> Reply:
        """Send a command whose effect was shown, and return its recorded outcome. Raises as `answer_trial` does.

        202 without an outcome means that the command is durable but not decided yet; the same request asks again. 409
        means that the command would now touch more partitions than shown, and shows its effect anew.
        """
        asked = await self._read(request, {})
        if isinstance(asked, Denied):
            return asked.status, {"error": asked.why}
        command, body = asked.command, asked.body
        if needs_word(command) and body.word != EVERYTHING:
            return 400, {"error": f"this applies to the whole cluster: type the word {EVERYTHING}"}
        shown = self._shown.get(body.trial)
        if shown is None or not is_same(shown.command, command):
            return 409, {"error": "the effect was not shown, or too long ago: check it again", **self._again(command)}
        if isinstance(command, SHOWN_FIRST) and not self._trial(command).keys <= shown.keys:
            return 409, {
                "error": "the command would now touch more than was shown: check again",
                **self._again(command),
            }
        return await self._send(command, request.remote)

    async def _read(self, request: web.Request, defaults: Mapping[str, str]) -> "_Asked | Denied":
        user = self.authorizer.writer_of(request)
        if isinstance(user, Denied):
            return user
        body = await read_body(request, _Body, MAX_BODY_BYTES)
        command = read_command({**defaults, **body.command}, user)
        return Denied(400, command.detail) if isinstance(command, Malformed) else _Asked(body, command)

    async def _send(self, command: AnyCommand, peer: str | None) -> Reply:
        if self._sending >= MAX_SENDING:
            return 503, {"error": f"{MAX_SENDING} commands are being sent already: try again in a moment"}
        _log.info(
            "a user sends a command",
            by=command.by,
            type=type(command).__struct_config__.tag,
            id=command.id,
            cluster=command.cluster,
            peer=peer,
        )
        self._sending += 1
        try:
            answer = await self.send(command)
        except OutcomeMissingError:
            return 202, {"outcome": None}
        except DroverError as error:
            return 503, {"error": f"{error}; sending it again with the same id is harmless"}
        finally:
            self._sending -= 1
        return 200, {"outcome": answer_row(answer)}

    def _trial(self, command: AnyCommand) -> Trial:
        present = self.page.present
        if present is None or self.page.standing["cut_since_ms"] is not None:
            raise LogUnavailableError("the log is unavailable, so the effect of the command is unknown")
        located = present.cluster(command.cluster)
        if located is None:
            raise ValueError(f"the log has no entry for cluster {command.cluster}")
        state, shard = located
        return trial(command, state, shard, present.view.log.folds[shard].position - 1)

    def _again(self, command: AnyCommand) -> dict[str, Any]:
        return {"shown": self._show(command, self._trial(command))}

    def _show(self, command: AnyCommand, shown: Trial) -> dict[str, Any]:
        name = secrets.token_hex(8)
        # Commands that also apply to later partitions are sent even if more partitions were added since.
        keys = shown.keys if isinstance(command, SHOWN_FIRST) else _NOTHING
        self._shown[name] = _Shown(command, keys)
        self._partitions_shown += len(keys)
        while len(self._shown) > 1 and (
            len(self._shown) > MAX_TRIALS_KEPT or self._partitions_shown > MAX_PARTITIONS_KEPT
        ):
            self._forget_one(name)
        return {"trial": name, **shown.document()}

    def _forget_one(self, latest: str) -> None:
        """Forget the oldest trial, except the latest, of the user whose trials take most."""
        taken: Counter[str] = Counter()
        for shown in self._shown.values():
            taken[shown.command.by] += 1 if len(self._shown) > MAX_TRIALS_KEPT else len(shown.keys)
        others = {name: shown.command.by for name, shown in self._shown.items() if name != latest}
        user = max(others.values(), key=taken.__getitem__)
        oldest = next(name for name, by in others.items() if by == user)
        self._partitions_shown -= len(self._shown.pop(oldest).keys)


def sender(connection: LogConnection) -> Send:
    """Return a function that sends a command as any client does, and waits for its recorded outcome."""

    async def send(command: AnyCommand) -> Answer:
        async with Client(connection) as client:
            sent = await client.submit(command)
            (answer,) = await client.outcomes([sent], OUTCOME_TIMEOUT_S)
        return answer

    return send
