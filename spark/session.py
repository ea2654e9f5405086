"""Spark sessions: quiet, small, with the locked jars, and without resolving dependencies at run time."""

import contextlib
import os
import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession

from drover.errors import SparkJobError
from drover.jars import ensure
from drover.settings.java_options import JavaNeeds
from drover.spark.java_home import java_home
from drover.spark.java_process import end_of_java, keep_accumulators_quiet, start_java

LOCAL_MASTER = "local[2]"
PROGRAM_ROOT = Path(__file__).parents[1]
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_CLASS_PATH = "spark.driver.extraClassPath"
# Spark's scripts run a first Java to build the command line of the second.
_LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOG4J = """\
status = error
rootLogger.level = {level}
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""

# docs: spark/README.md says why each. Counts and sizes are for one machine; `settings` of a cluster overrides them.
DEFAULTS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "drover.spark.worker_daemon",
    "spark.cleaner.referenceTracking.blocking": "false",
}
LOCAL: Mapping[str, str] = {
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
}

_NO_NEEDS = JavaNeeds()


def open_session(
    name: str,
    *,
    directory: Path,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    needs: JavaNeeds = _NO_NEEDS,
) -> SparkSession:
    """Open Spark, or take the session that spark-submit has opened for this process.

    Downloads the jars of the set `spark` once; resolves nothing at run time. Spark's log is `spark.log` in `directory`,
    Java's output `java.log`; scratch files are below it. `master` defaults to that of spark-submit, else to two threads
    of this machine; `settings` are Spark's own, and win; `needs` is what the login at the log's Kafka needs. Raises
    `ConfigurationError` for a missing Java or jar, and `SparkJobError` for a Java that does not start.
    """
    directory.mkdir(parents=True, exist_ok=True)
    jars = [file for jar_set in ("spark", *needs.jar_sets) for file in ensure(jar_set)]
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not is_submitted:
        _prepare_environment(needs)
    master = master or (None if is_submitted else LOCAL_MASTER)
    builder: Any = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    own = dict(settings or {})
    options = {
        **DEFAULTS,
        **(LOCAL if master is not None and master.startswith("local") else {}),
        **_class_path(jars, None if is_submitted else master, own),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    properties = (f'"-D{name}={value}"' for name, value in needs.system_properties.items())
    options[_JVM_OPTIONS] = " ".join(filter(None, [_quiet(directory), *properties, own.pop(_JVM_OPTIONS, "")]))
    if not is_submitted:
        scratch = scratch_of_this_process(directory)
        options["spark.local.dir"] = str(scratch)
        options[_JVM_OPTIONS] += f" -Djava.io.tmpdir={scratch}"
    given = {key: value for key, value in options.items() if key not in own}
    for key, value in ({**given, **own} if is_submitted else given).items():
        builder = builder.config(key, value)
    if is_submitted:
        session: SparkSession = builder.getOrCreate()
        # The configuration of spark-submit governs its messages before this.
        session.sparkContext.setLogLevel("WARN")
    else:
        # In the scratch of this process, since several audits may share the directory.
        with _handed_over(scratch_of_this_process(directory), own):
            start_java({**({} if master is None else {"spark.master": master}), **given}, directory / "java.log")
            session = _session_of(builder, directory / "java.log")
    keep_accumulators_quiet(session.sparkContext)
    return session


def _session_of(builder: Any, output: Path) -> SparkSession:
    try:
        session: SparkSession = builder.getOrCreate()
    except (Py4JNetworkError, ConnectionError) as error:
        raise SparkJobError(f"Spark did not start: {end_of_java() or error} (more in {output})") from error
    return session


def close_session(session: SparkSession) -> None:
    """Stop Spark; does nothing where its Java has ended, or ends meanwhile.

    systemd stops all processes of a service at once. PySpark then raises, or warns that Java may have crashed.
    """
    with contextlib.suppress(Py4JError, ConnectionError), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM process", RuntimeWarning)
        session.stop()


def _class_path(jars: Sequence[Path], master: str | None, own: dict[str, str]) -> dict[str, str]:
    """Return the settings with the jars; without executors, the class path in `own` is moved into them."""
    if not is_one_process(master):
        return {"spark.jars": ",".join(map(str, jars))}
    # Jars on Java's own class path are not copied at each start.
    return {_CLASS_PATH: os.pathsep.join([*map(str, jars), *filter(None, [own.pop(_CLASS_PATH, "")])])}


def is_one_process(master: str | None) -> bool:
    """Whether the executors of a master are threads of the driver's Java."""
    return master is not None and re.fullmatch(r"local(\[.*\])?", master) is not None


def scratch_of_this_process(directory: Path) -> Path:
    """Make the folder for Spark's temporary files, and remove those of processes that are gone."""
    scratch = directory / "scratch"
    own = scratch / str(os.getpid())
    own.mkdir(parents=True, exist_ok=True)
    for other in scratch.iterdir():
        if other.name.isdigit() and not psutil.pid_exists(int(other.name)):
            shutil.rmtree(other, ignore_errors=True)  # its Java may still be removing it, too
    return own


@contextlib.contextmanager
def _handed_over(directory: Path, settings: Mapping[str, str]) -> Iterator[None]:
    """Hand settings to the JVM in a file that only this user can read, since they may be secrets."""
    file = directory / "options.properties"
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as stream:
        stream.writelines(f"{_property(key)}={_property(value)}\n" for key, value in settings.items())
    before = os.environ.get(_SUBMIT_ARGUMENTS)
    os.environ[_SUBMIT_ARGUMENTS] = f"--properties-file {shlex.quote(str(file))} {before or 'pyspark-shell'}"
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        if before is None:
            del os.environ[_SUBMIT_ARGUMENTS]
        else:
            os.environ[_SUBMIT_ARGUMENTS] = before


def _property(text: str) -> str:
    """Escape a key or a value for Java's property files."""
    units = text.encode("utf-16-be")
    codes = (int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2))
    return "".join(chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\u{code:04x}" for code in codes)


def jvm_pid(session: SparkSession) -> int:
    """Return the process id of the driver's JVM."""
    return int(session._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]  # noqa: SLF001 - Spark tells it nowhere else


def _prepare_environment(needs: JavaNeeds) -> None:
    """Set the environment before the JVM starts, since Spark's options for it do not work."""
    os.environ["JAVA_HOME"] = str(java_home(needs.modules))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", _LAUNCHER_OPTIONS)
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(PROGRAM_ROOT) not in entries:
        # Workers do not get the driver's additions to its own path.
        os.environ["PYTHONPATH"] = os.pathsep.join([str(PROGRAM_ROOT), *filter(None, entries)])


def _quiet(directory: Path) -> str:
    """Return the option that sends log4j's output to a file; the JVM needs it before any of Spark's settings."""
    file = directory / "log4j2.properties"
    # Renamed into place, since the Java of another audit may be reading it.
    partial = file.with_suffix(f".{os.getpid()}.part")
    partial.write_text(_LOG4J.format(level="warn", file=directory / "spark.log"), encoding="utf-8")
    partial.replace(file)
    return f"-Dlog4j2.configurationFile=file:{file}"
