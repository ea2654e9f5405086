"""Questions of the page that read a whole managed cluster: judging a plan, and finding leftover throttles.

They change nothing, only the page itself may ask them, and they are answered one after the other.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

from drover.errors import ClusterError, ConfigurationError
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

    async def answer_review(self, request: web.Request) -> Reply:
        """Judge a plan. Raises `ValueError` for an invalid request."""
        stranger = stranger_of(request)
        if stranger is not None:
            return stranger.status, {"error": stranger.why}
        plan = await read_body(request, PastedPlan, MAX_PLAN_BYTES)
        state = self._state(plan.cluster)
        return await self._take_turn(lambda: self.looking.review(state, plan))

    async def answer_throttles(self, request: web.Request) -> Reply:
        """Find the throttles in a cluster that Drover has not set. Raises as `answer_review` does."""
        stranger = stranger_of(request)
        if stranger is not None:
            return stranger.status, {"error": stranger.why}
        asked = await read_body(request, NamedCluster, MAX_NAME_BYTES)
        name = self._state(asked.cluster).name
        return await self._take_turn(lambda: self.looking.find_throttles(name))

    def _state(self, cluster: str) -> ClusterState:
        located = None if self.page.present is None else self.page.present.cluster(cluster)
        if located is None:
            raise ConfigurationError(f"the log has no entry for cluster {cluster}")
        return located[0]

    async def _take_turn(self, look: Callable[[], Awaitable[Found]]) -> Reply:
        if self._waiting >= MAX_WAITING:
            return 503, {"error": f"{MAX_WAITING} questions about clusters are waiting already: try again in a moment"}
        self._waiting += 1
        try:
            async with self._turn:
                return 200, await look()
        except ConfigurationError as error:
            return 400, {"error": str(error)}
        except ClusterError as error:
            return 503, {"error": str(error)}
        finally:
            self._waiting -= 1
