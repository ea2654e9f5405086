"""Locks the jars of another version of Kafka: `python -m tests.jars.lock_kafka 3.9.2`; needs Maven and its network.

Maven resolves `kafka_2.13` with its runtime dependencies and what lets a broker log; what it fetched is hashed and
written to `drover/jars/kafka-VERSION.lock.json`.
"""

import argparse
import hashlib
import json
import re
import subprocess
import tempfile
from pathlib import Path

JARS = Path(__file__).parents[2] / "drover" / "jars"
# Kafka's own choice of a logger: reload4j until 3.9, Log4j 2 after that.
LOGGERS = {
    "3": (("org.slf4j", "slf4j-reload4j", "1.7.36"),),
    "4": (("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),),
}
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>drover</groupId><artifactId>lock</artifactId><version>1</version><dependencies>{}</dependencies></project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
RESOLVED = re.compile(r"^ +([\w.\-]+):([\w.\-]+):jar:([\w.\-]+):(?:compile|runtime)", re.MULTILINE)


def lock(version: str) -> str:
    """Resolve a version, and return the text of its lock."""
    asked = (("org.apache.kafka", "kafka_2.13", version), *LOGGERS[version[0]])
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "pom.xml").write_text(POM.format("".join(DEPENDENCY.format(*one) for one in asked)), encoding="utf-8")
        _maven(root, "dependency:copy-dependencies", "-DoutputDirectory=libs")
        _maven(root, "dependency:list", "-DoutputFile=list.txt")
        found = sorted(RESOLVED.findall((root / "list.txt").read_text(encoding="utf-8")))
        files = {file.name: file.read_bytes() for file in (root / "libs").iterdir()}
    entries = []
    for group, name, jar_version in found:
        content = files.pop(f"{name}-{jar_version}.jar", None)
        if content is not None:
            digest = hashlib.sha256(content).hexdigest()
            entries.append(
                {"group": group, "name": name, "version": jar_version, "sha256": digest, "size": len(content)}
            )
    # What has a classifier is native code of one platform, which Kafka does without.
    assert all("linux" in name or "osx" in name or "windows" in name for name in files), f"not in the list: {[*files]}"
    return "[\n" + ",\n".join(f"  {json.dumps(entry)}" for entry in entries) + "\n]\n"


def _maven(directory: Path, *arguments: str) -> None:
    command = ["mvn", "--quiet", "--batch-mode", *arguments, "-DincludeScope=runtime"]
    subprocess.run(command, cwd=directory, check=True)


def main() -> None:
    """Lock the versions that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.jars.lock_kafka")
    parser.add_argument("versions", nargs="+", metavar="VERSION")
    for version in parser.parse_args().versions:
        (JARS / f"kafka-{version}.lock.json").write_text(lock(version), encoding="utf-8")


if __name__ == "__main__":
    main()
