"""The real server over a log in memory: what a test appends is what browsers see."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network

from drover.client.answers import Answer
from drover.client.time_travel import Point, Travel
from drover.decide.commands import DECIDING
from drover.decide.decision import Facts
from drover.events.codec import command_digest
from drover.events.commands import AnyCommand
from drover.events.partitions import PartitionReference
from drover.events.records import Outcome
from drover.fold.log import ShardFold
from drover.service.connections import Occupants
from drover.web.identity import Authorizer
from drover.web.page_server import listening
from drover.web.page_state import PageState
from drover.web.past import Past
from drover.web.server import MAX_VIEWERS, Server, Telemetry
from drover.web.surveys import Looking, Surveys
from drover.web.writes import Writes
from tests.client.log import CLUSTER
from tests.web.scene import Scene

USER_HEADER = "X-Forwarded-User"


@dataclass
class Showing:
    """A server that listens, and the scene that it shows."""

    scene: Scene
    page: PageState = field(default_factory=PageState)
    port: int = 0
    sent: list[AnyCommand] = field(default_factory=list)
    viewers: Occupants = field(default_factory=lambda: Occupants(MAX_VIEWERS))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def begin(self) -> None:
        """Let the page know the log."""
        present = self.page.begin(self.scene.view)
        present.archive.take(self.scene.drain())
        present.archive.complete()

    async def travel(self, _: str, points: Sequence[Point]) -> Travel:
        """Fold the log up to some points, as a reader of a real one does."""
        found = Travel(ShardFold(0, 1), points)
        for offset, payload in enumerate(self.scene.writer.records):
            found.take(offset, payload)
        found.end()
        return found

    async def send(self, command: AnyCommand) -> Answer:
        """Decide a command as the owner of the shard would, and record it."""
        self.sent.append(command)
        state = self.scene.writer.fold.state.clusters[CLUSTER]
        decision = DECIDING[type(command)](command, state, Facts())
        outcome = Outcome(
            id=command.id, cluster=command.cluster, type=str(type(command).__struct_config__.tag), by=command.by,
            reason=command.reason, topic="drover.cancel", offset=len(self.sent), digest=command_digest(command),
            verdict="refused" if decision.refused else "accepted", refusals=decision.refusals, plan=decision.plan,
            accepted=tuple(PartitionReference(*key) for key in decision.accepted), remarks=decision.remarks,
        )  # fmt: skip
        self.scene.say(*decision.events, outcomes=(outcome,))
        offset = self.scene.writer.fold.position - 1
        self.refresh()
        return Answer(outcome, 0, offset, self.scene.at_ms)

    def refresh(self) -> None:
        """Tell viewers what was appended since."""
        assert self.page.present is not None, "it was begun"
        self.scene.breathe()
        self.page.present.archive.follow(self.scene.drain())
        self.page.refresh()


@asynccontextmanager
async def showing(
    scene: Scene,
    *,
    port: int = 0,
    writes: bool = False,
    proxies: Sequence[str] = ("127.0.0.1",),
    looking: Looking | None = None,
    telemetry: Telemetry | None = None,
) -> AsyncIterator[Showing]:
    """Serve a scene while the context is open; with `writes` also what users send whom a proxy names."""
    shown = Showing(scene)
    shown.begin()
    authorizer = Authorizer(USER_HEADER, tuple(ip_network(proxy) for proxy in proxies))
    writing = Writes(shown.page, authorizer, shown.send) if writes else None
    surveys = None if looking is None else Surveys(shown.page, looking)
    server = Server(
        shown.page, Past(shown.travel), "test", telemetry, writes=writing, surveys=surveys, viewers=shown.viewers
    )
    async with listening(server, "127.0.0.1", port) as shown.port:
        yield shown
