"""How a download shows itself on stderr: a bar in a terminal, one line elsewhere."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

Advance = Callable[[int], None]
ProgressFactory = Callable[[str, int], AbstractContextManager[Advance]]


@contextlib.contextmanager
def stderr_progress(title: str, total_bytes: int) -> Iterator[Advance]:
    """Show a download of `total_bytes` under `title`; yields what is told of each gain, from any thread."""
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"Downloading {title} ({total_bytes / 1e6:.0f} MB)", soft_wrap=True, highlight=False)
        yield _ignore
        return
    columns = (
        TextColumn("Downloading {task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    lock = threading.Lock()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=total_bytes)

        def advance(gained_bytes: int) -> None:
            with lock:
                bar.update(task, advance=gained_bytes)

        yield advance


@contextlib.contextmanager
def no_progress(_title: str, _total_bytes: int) -> Iterator[Advance]:
    """Show nothing."""
    yield _ignore


def _ignore(_gained_bytes: int) -> None:
    """Where nobody looks, nothing is shown."""
