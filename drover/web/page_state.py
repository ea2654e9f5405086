"""The page's state and the channels that show it; sources update it, handlers read it."""

import time
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from drover.client.live_view import View
from drover.client.views.dead_letter_rows import DeadLetter
from drover.web.changes import Document
from drover.web.channels import Channels
from drover.web.documents import document
from drover.web.plots import Plots
from drover.web.present import LogEnds, Present
from drover.web.query import Query


@dataclass(slots=True)
class PageState:
    """The present and its channels; `cuts` holds, for each lost source, since when (ms since the epoch) and why."""

    present: Present | None = None
    cuts: dict[str, tuple[int, str]] = field(default_factory=dict)
    _ends: LogEnds = field(default_factory=LogEnds)
    _dead_letters: list[DeadLetter] = field(default_factory=list)
    _dead_letters_total: int = 0
    plots: Plots = field(default_factory=Plots)
    channels: Channels = field(init=False)

    def __post_init__(self) -> None:
        self.channels = Channels(uuid4().hex[:12], self.build)

    @property
    def is_ready(self) -> bool:
        """Whether there is something to show."""
        return self.present is not None

    def begin(self, view: View) -> Present:
        """Start, or start again, from a log that was folded up to its end."""
        self.present = Present(view, ends=self._ends)
        self._tell_present()
        return self.present

    def build(self, query: Query) -> Document:
        """Return the current document of a query."""
        assert self.present is not None, "queries wait until the log has been read"
        return document(self.present, query)

    def refresh(self) -> None:
        """Send the changes to every viewer."""
        assert self.present is not None, "the log has been read"
        self.plots.sample(self.present.view, time.time_ns() // 1_000_000)
        self.channels.refresh(time.monotonic())

    def cut(self, source: str, why: str) -> bool:
        """Record that a source is lost, since the first such call; return whether the loss or its reason is new."""
        since_ms, last_reason = self.cuts.get(source, (time.time_ns() // 1_000_000, None))
        self.cuts[source] = (since_ms, why)
        return why != last_reason

    def restore(self, source: str) -> bool:
        """Record that a source is available; return whether it was lost before."""
        return self.cuts.pop(source, None) is not None

    @property
    def standing(self) -> dict[str, Any]:
        """Return the heartbeat for viewers: the server's time, and the reason if the log is out of reach."""
        since_ms, why = min(self.cuts.values(), default=(None, ""))
        return {"now_ms": time.time_ns() // 1_000_000, "cut_since_ms": since_ms, "cut_why": why}

    def see_ends(self, ends: LogEnds) -> None:
        """Set the end offsets of the topics."""
        self._ends = ends
        if self.present is not None:
            self.present.ends = ends

    def begin_dead_letters(self, older: int) -> None:
        """Start anew; `older` counts the dead letters before those that follow."""
        self._dead_letters, self._dead_letters_total = [], older

    def see_dead_letters(self, letters: list[DeadLetter], most: int) -> None:
        """Add dead letters, and keep the latest."""
        self._dead_letters_total += len(letters)
        newest_first = sorted((*self._dead_letters, *letters), key=lambda letter: (-letter.at_ms, -letter.offset))
        self._dead_letters = newest_first[:most]
        self._tell_present()

    def _tell_present(self) -> None:
        if self.present is not None:
            self.present.dead_letters = self._dead_letters
            self.present.dead_letters_total = self._dead_letters_total
