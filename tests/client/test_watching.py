"""Of several projectors the one that writes is told of, for as long as it is heard."""

from drover.client.history import FoldedLog
from drover.client.transfers import Transfers
from drover.client.watching import SAMPLES_MS, View, _see
from events.codec import encode_progress
from events.progress import ProjectionSample


def said(writer: str, role: str, at_ms: int) -> bytes:
    sample = ProjectionSample(cluster="prod", writer=writer, role=role, at_ms=at_ms, lag_events=0, lag_ms=0)
    return encode_progress(sample)


def test_who_writes_is_told_and_not_who_follows() -> None:
    view = View(FoldedLog({}), Transfers())
    _see(view, said("a", "following", 1000))
    assert view.projections["prod"].writer == "a"
    _see(view, said("b", "writing", 2000))
    _see(view, said("a", "following", 3000))
    assert view.projections["prod"].writer == "b"
    _see(view, said("a", "following", 2000 + SAMPLES_MS + 1))
    assert view.projections["prod"].writer == "a"
