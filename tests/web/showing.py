"""The real server over a log in memory: what a test appends is what browsers see."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from drover.client.time_travel import Point, Travel
from drover.shard.fold import ShardFold
from drover.web.page_state import PageState
from drover.web.past import Past
from drover.web.server import Server
from drover.web.serving import listening
from tests.web.scene import Scene


@dataclass
class Showing:
    """A server that listens, and the scene that it shows."""

    scene: Scene
    page: PageState = field(default_factory=PageState)
    port: int = 0

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

    def refresh(self) -> None:
        """Tell viewers what was appended since."""
        assert self.page.present is not None, "it was begun"
        self.scene.breathe()
        self.page.present.archive.follow(self.scene.drain())
        self.page.refresh()


@asynccontextmanager
async def showing(scene: Scene, *, port: int = 0) -> AsyncIterator[Showing]:
    """Serve a scene while the context is open."""
    shown = Showing(scene)
    shown.begin()
    server = Server(shown.page, Past(shown.travel), "test")
    async with listening(server, "127.0.0.1", port) as shown.port:
        yield shown
