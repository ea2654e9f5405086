"""Pytest plugin: a test that fails shows the end of what its workers logged.

What happens only on a machine that is slow by chance is not seen a second time.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pytest

SHOWN_LINES = 40


@runtime_checkable
class RunsWorkers(Protocol):
    """A Drover of a test: each of its workers has a log in its directory."""

    directory: Path
    workers: Mapping[str, Any]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the logs to the report."""
    del call
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        report.sections.extend(ends_of_logs(item.funcargs.values()))
    return report


def ends_of_logs(arguments: Iterable[object]) -> Iterator[tuple[str, str]]:
    """Yield the title and the last lines of each worker's log, once for each directory among the arguments of a test.

    A Drover counts as its directory; a test that makes one itself gives it the directory that pytest made.
    """
    places = (one.directory if isinstance(one, RunsWorkers) else one for one in arguments)
    for directory in dict.fromkeys(place for place in places if isinstance(place, Path)):
        for log in sorted(directory.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()
            yield f"the end of {log.name}", "\n".join(lines[-SHOWN_LINES:])
