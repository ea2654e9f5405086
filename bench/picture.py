"""`python -m bench.picture`: play a short story on a real local cluster and draw what the commands print.

The picture in README.md, docs/pictures/rollback.svg, is made by this and by nothing else. The commands run on a
terminal of their own; what they write to it is drawn unchanged.
"""

import fcntl
import html
import io
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "rollback.svg"
# Just wide enough that only the details of the history are wrapped.
COLUMNS, LINES = 144, 60
PARTITIONS, MEGABYTES = 4, 40
ENOUGH_BYTES = 12_000_000
PLAN: dict[str, Any] = {
    "version": 1,
    "partitions": [
        {"topic": "orders", "partition": 0, "replicas": [4, 2, 3]},
        {"topic": "orders", "partition": 2, "replicas": [3, 4, 2]},
        {"topic": "orders", "partition": 3, "replicas": [4, 2, 3]},
    ],
}
# In the units of rich's SVG: a height of 20 by its default aspect ratio.
CHARACTER_WIDTH = 20 * 0.61
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@dataclass(frozen=True, slots=True)
class Terminal:
    """Runs `drover` in a directory, on a terminal whose output is drawn, or unseen."""

    directory: Path
    console: Console

    def show(self, *arguments: str) -> None:
        """Run a command and draw it with everything that it prints."""
        self.console.print(Text(f"$ drover {shlex.join(arguments)}", style="bold"))
        printed = Text.from_ansi(self._on_terminal(arguments).rstrip())
        self.console.print(printed, no_wrap=True, overflow="ignore", crop=False)
        self.console.print()

    def run(self, *arguments: str) -> str:
        """Run a command that is not part of the picture, and return what it prints."""
        return subprocess.run(
            command(arguments),
            cwd=self.directory,
            env=self._environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    @contextmanager
    def in_background(self, *arguments: str) -> Iterator[None]:
        """Keep a command running; its log goes to a file."""
        with (self.directory / f"{arguments[0]}.log").open("wb") as log:
            process = subprocess.Popen(
                command(arguments), cwd=self.directory, env=self._environment(), stdout=log, stderr=log
            )
        try:
            yield
        finally:
            process.terminate()
            process.wait()

    def _on_terminal(self, arguments: tuple[str, ...]) -> str:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        process = subprocess.Popen(
            command(arguments),
            cwd=self.directory,
            env=self._environment(),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        printed = b"".join(read_to_end(ours)).decode().replace("\r\n", "\n")
        os.close(ours)
        if process.wait():
            raise SystemExit(f"drover {shlex.join(arguments)} ended with {process.returncode}: {printed}")
        return printed

    def _environment(self) -> dict[str, str]:
        config = self.directory / ".local" / "cluster" / "drover.toml"
        return {**os.environ, "DROVER_CONFIG": str(config), "TERM": "xterm-256color"}


def command(arguments: tuple[str, ...]) -> list[str]:
    """Return the call of this checkout's `drover`."""
    return [sys.executable, "-m", "drover", *arguments]


def read_to_end(terminal: int) -> Iterator[bytes]:
    """Yield what is written to a terminal until nobody has it open any more, which Linux reports as an error."""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            return
        if not part:
            return
        yield part


def main() -> None:
    """Play the story and write the picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    with tempfile.TemporaryDirectory(prefix="drover-picture-") as name:
        terminal = Terminal(Path(name), console)
        terminal.run("local", "up")
        try:
            terminal.run("log", "init")
            terminal.run("local", "seed", "orders", f"--partitions={PARTITIONS}", f"--megabytes={MEGABYTES}")
            (terminal.directory / "plan.json").write_text(json.dumps(PLAN), encoding="utf-8")
            with terminal.in_background("worker", "--listen", "127.0.0.1:0"):
                play(terminal)
        finally:
            terminal.run("local", "down")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn(console), encoding="utf-8")


def play(terminal: Terminal) -> None:
    """Move three partitions, look at them while they move, roll one back and ask what happened."""
    asked = ("--by", "alice", "--reason")
    terminal.show("alter", "plan.json", "--plan", "friday", "--throttle", "1MB/s", *asked, "drain broker 1")
    wait(terminal, lambda totals: bool(totals["rate"]) and totals["bytes_done"] > ENOUGH_BYTES)
    terminal.show("status", "--partitions")
    terminal.show("cancel", "--rollback", "--partition", "orders:0", *asked, "latency alarm")
    wait(terminal, lambda totals: totals["reassignments"] < len(PLAN["partitions"]))
    terminal.show("history", "--partition", "orders:0", "--events")


def wait(terminal: Terminal, condition: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until the totals of the status are so."""
    deadline = time.monotonic() + 60
    while not condition(json.loads(terminal.run("status", "-o", "json"))["totals"]):
        if time.monotonic() > deadline:
            raise SystemExit("this machine is too slow for the picture: try again when it has less to do")
        # Each look starts a process: without a pause they would take the cores from the copy that is waited for.
        time.sleep(0.2)


def drawn(console: Console) -> str:
    """Return the recorded output as SVG, with fonts that every machine has instead of ones from the web."""
    svg = console.export_svg(title="Drover on a four-broker Kafka", unique_id="drover")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", FONTS)
    svg = re.sub(r'<text (class="[^"]+") x="([^"]+)" y="([^"]+)" textLength="[^"]+"([^>]*)>(.*?)</text>', runs, svg)
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


def runs(line: re.Match[str]) -> str:
    """Give each run of words its own place, so that columns line up whatever the width of the viewer's font."""
    style, x, y, clip, escaped = line.groups()
    found = re.finditer(r"[^\xa0]+(?:\xa0[^\xa0]+)*", html.unescape(escaped))
    places = [(float(x) + CHARACTER_WIDTH * run.start(), run[0]) for run in found]
    return "".join(
        f'<text {style} x="{place:g}" y="{y}" textLength="{CHARACTER_WIDTH * len(words):g}"{clip}>'
        f"{html.escape(words, quote=False)}</text>"
        for place, words in places
    )


if __name__ == "__main__":
    main()
