"""Plans that somebody pastes to have them judged; nothing is sent, and only the page itself may ask."""

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
# A review looks at a whole cluster: one after the other.
MAX_WAITING = 4


class PastedPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plan as text, in any format of `drover plan check`; the file's name, and the throttle as people write it."""

    cluster: str
    text: str
    name: str = "plan.json"
    throttle: str = ""


Review = Callable[[ClusterState, PastedPlan], Awaitable[Mapping[str, Any]]]


@dataclass(slots=True)
class Reviews:
    """Answers requests for a judgement, by `review`."""

    page: PageState
    review: Review
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: int = 0

    async def answer(self, request: web.Request) -> Reply:
        """Judge a plan. Raises `ValueError` for a request that means nothing."""
        stranger = stranger_of(request)
        if stranger is not None:
            return stranger.status, {"error": stranger.why}
        plan = await read_body(request, PastedPlan, MAX_PLAN_BYTES)
        found = None if self.page.present is None else self.page.present.cluster(plan.cluster)
        if found is None:
            return 404, {"error": f"the log knows no cluster {plan.cluster}"}
        if self._waiting >= MAX_WAITING:
            return 503, {"error": f"{MAX_WAITING} plans are being judged or wait for it: try again in a moment"}
        self._waiting += 1
        try:
            async with self._one_at_a_time:
                return 200, await self.review(found[0], plan)
        except ConfigurationError as error:
            return 400, {"error": str(error)}
        except ClusterError as error:
            return 503, {"error": str(error)}
        finally:
            self._waiting -= 1
