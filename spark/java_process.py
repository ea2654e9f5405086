"""The Java of this process: its start, with its output in a file, and how it ended."""

import logging
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from py4j import java_gateway
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from drover.errors import SparkJobError

# A connection to Java ends before the system reports the end of its process.
ENDS_WITHIN_S = 2.0


def start_java(options: Mapping[str, str], output: Path) -> None:
    """Start this process's Java with Spark's options, unless it runs; its output goes to a file.

    Spark's own log is another file. This one has the output of the virtual machine and of Python's workers, and the
    stack traces of work that a stop has interrupted. Raises `SparkJobError` if Java does not start.
    """
    _keep_off_the_terminal(output)
    if SparkContext._gateway is not None:  # noqa: SLF001 - Spark gives no other way to its Java
        return
    conf = SparkConf()
    for name, value in options.items():
        conf.set(name, value)
    with output.open("ab") as file:
        try:
            gateway = launch_gateway(conf, {"stdout": file, "stderr": file})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            raise SparkJobError(f"Java did not start: {_last_line(output)} (more in {output})") from error
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as above


def keep_accumulators_quiet(context: SparkContext) -> None:
    """Let the thread for Spark's accumulators, of which Drover has none, end without a trace when Java is gone."""
    server = context._accumulatorServer  # noqa: SLF001 - as above
    server.handle_error = lambda *_: None  # type: ignore[method-assign]


def end_of_java() -> str | None:
    """Describe how this process's Java ended; None if it runs, or if it is not a child of this process."""
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - as above
    if process is None:
        return None
    with suppress(subprocess.TimeoutExpired):
        process.wait(ENDS_WITHIN_S)
    return None if process.returncode is None else in_words(process.returncode)


def in_words(code: int) -> str:
    """Write the exit code of a process."""
    if code >= 0:
        return f"Java ended with exit code {code}"
    try:
        return f"Java ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"Java ended by signal {-code}"


def _keep_off_the_terminal(output: Path) -> None:
    """Send the log of the bridge to Java to the file: it logs each fault with a trace before we report it.

    The file is opened at once. If its directory were gone at the first fault, logging would raise, py4j would close the
    connection, and the cause of the fault would be lost.
    """
    logger = logging.getLogger("py4j")
    for before in list(logger.handlers):
        logger.removeHandler(before)
        before.close()
    logger.addHandler(logging.FileHandler(output))
    logger.propagate = False
    # It logs some faults through the module `logging` itself, whose root logger writes to the terminal.
    java_gateway.logging = logging.getLogger("py4j.java_gateway")


def _last_line(output: Path) -> str:
    lines = [line.strip() for line in output.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it does not say why"
