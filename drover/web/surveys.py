"""Questions of the page that read a whole managed cluster: judging a plan, and finding leftover throttles.

They change nothing, only the page itself may ask them, and they are answered one after the other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from drover.errors import ClusterError, ConfigurationError
from drover.service.connections import Occupants
from drover.state.cluster import ClusterState
from drover.web.bodies import Reply, read_body
from drover.web.identity import stranger_of
from drover.web.page_state import PageState

MAX_PLAN_BYTES = 8 * 1024 * 1024
MAX_NAME_BYTES = 4 * 1024
MAX_WAITING = 4


class PastedPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plan as text, in any format of `drover plan check`, the file's name, and the throttle as typed."""

    cluster: str
    text: str
    name: str = "plan.json"
    throttle: str = ""


class NamedCluster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cluster whose throttles to find."""

    cluster: str


Question = TypeVar("Question", PastedPlan, NamedCluster)
_BUSY: Reply = 503, {"error": f"{MAX_WAITING} questions about clusters are waiting already: try again in a moment"}
Found = Mapping[str, Any]
Review = Callable[[ClusterState, PastedPlan], Awaitable[Found]]
FindThrottles = Callable[[str], Awaitable[Found]]


@dataclass(frozen=True, slots=True)
class Looking:
    """Reads managed clusters: `review` judges a plan, `find_throttles` finds others' throttles in a cluster by name.

    Both raise `ClusterError` if the cluster does not answer, and `ConfigurationError` for an invalid question.
    """

    review: Review
    find_throttles: FindThrottles


@dataclass(slots=True)
class Surveys:
    """Answers the questions, one after the other."""

    page: PageState
    looking: Looking
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: int = 0
    # The connections on which bodies are being read.
    _senders: Occupants = field(default_factory=lambda: Occupants(MAX_WAITING))

    async def answer_review(self, request: web.Request) -> Reply:
        """Judge a plan. Raises `ValueError` for an invalid request."""
        return await self._answer(request, PastedPlan, MAX_PLAN_BYTES, self.looking.review)

    async def answer_throttles(self, request: web.Request) -> Reply:
        """Find the throttles in a cluster that Drover has not set. Raises as `answer_review` does."""
        return await self._answer(
            request, NamedCluster, MAX_NAME_BYTES, lambda state, _: self.looking.find_throttles(state.name)
        )

    def _state(self, cluster: str) -> ClusterState:
        located = None if self.page.present is None else self.page.present.cluster(cluster)
        if located is None:
            raise ConfigurationError(f"the log has no entry for cluster {cluster}")
        return located[0]

    async def _answer(
        self,
        request: web.Request,
        kind: type[Question],
        most_bytes: int,
        look: Callable[[ClusterState, Question], Awaitable[Found]],
    ) -> Reply:
        stranger = stranger_of(request)
        if stranger is not None:
            return stranger.status, {"error": stranger.why}
        # Asked before the body is read, and again when others may have come meanwhile.
        if self._waiting >= MAX_WAITING:
            return _BUSY
        question = await self._read(request, kind, most_bytes)
        if self._waiting >= MAX_WAITING:
            return _BUSY
        state = self._state(question.cluster)
        self._waiting += 1
        try:
            async with self._turn:
                return 200, await look(state, question)
        except ConfigurationError as error:
            return 400, {"error": str(error)}
        except ClusterError as error:
            return 503, {"error": str(error)}
        finally:
            self._waiting -= 1

    async def _read(self, request: web.Request, kind: type[Question], most_bytes: int) -> Question:
        """Read a body. Only so many are read at a time: the request that has taken longest is cut off for a new one."""
        with self._senders.place_for(request.transport):
            return await read_body(request, kind, most_bytes)
