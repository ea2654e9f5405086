"""The lock: which jars Drover runs, from which coordinates, with which content; pure reading, no network.

The lock was made by resolving these with Maven (`mvn dependency:list`, runtime scope) and hashing what it fetched; make
it again the same way when a version changes.

- `kafka`: `kafka_2.13` with its runtime dependencies, `kafka-tools` alone (its reassignment command needs no more than
  the broker's jars), `log4j-slf4j-impl` so that brokers log.
- `spark`: what pyspark 4.2.0 lacks to read Kafka: the connector, its token provider, the Kafka client and the pool that
  they are built for, resolved by name.
- `msk`: how Kafka's Java client logs in with AWS_MSK_IAM, by Amazon, with all that it needs in one jar (classifier
  `all`). It is fetched only where that is set.
- `kafka-3.9.2` and so on: other versions of Kafka that a local cluster can run, each in a file of its own, made by
  `python -m tests.jars.lock_kafka`. They are fetched only when they are asked for.
- `zookeeper`: `zookeeper` with its runtime dependencies and the two that it marks as provided (`snappy-java`,
  `metrics-core`), `log4j-slf4j2-impl` and `log4j-core`; without Netty's native parts, which are one per platform.
"""

import functools
import json
from dataclasses import dataclass
from importlib import resources

from drover.errors import ConfigurationError

# What a local cluster runs unless told otherwise, and what Drover's promises are proven on first.
KAFKA_VERSION = "4.3.1"
_PREFIX, _SUFFIX = "kafka-", ".lock.json"


@dataclass(frozen=True, slots=True)
class Jar:
    """One Java archive at its Maven coordinates, with the content it must have."""

    group: str
    name: str
    version: str
    sha256: str
    size_bytes: int
    classifier: str | None = None

    @property
    def path(self) -> str:
        """Where it is below a Maven repository and below the cache, with `/` between the parts."""
        suffix = "" if self.classifier is None else f"-{self.classifier}"
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.name}-{self.version}{suffix}.jar"


@functools.cache
def read_lock() -> dict[str, tuple[Jar, ...]]:
    """Read the checked-in locks: set name to its jars, in class path order."""
    folder = resources.files("drover.jars")
    sets = dict(json.loads(folder.joinpath("jars.lock.json").read_text(encoding="utf-8")))
    for file in folder.iterdir():
        if file.name.startswith(_PREFIX) and file.name.endswith(_SUFFIX):
            sets[file.name.removesuffix(_SUFFIX)] = json.loads(file.read_text(encoding="utf-8"))
    return {
        set_name: tuple(
            Jar(
                *(entry["group"], entry["name"], entry["version"], entry["sha256"], entry["size"]),
                classifier=entry.get("classifier"),
            )
            for entry in entries
        )
        for set_name, entries in sets.items()
    }


def kafka_versions() -> tuple[str, ...]:
    """List the versions of Kafka that are locked, the oldest first."""
    others = (name.removeprefix(_PREFIX) for name in read_lock() if name.startswith(_PREFIX))
    return tuple(sorted((*others, KAFKA_VERSION), key=lambda version: tuple(map(int, version.split(".")))))


def kafka_set(version: str) -> str:
    """Name the jar set of a version of Kafka; one that is not locked is a ConfigurationError."""
    if version not in kafka_versions():
        raise ConfigurationError(f"Kafka {version} is not among the locked versions: {', '.join(kafka_versions())}")
    return "kafka" if version == KAFKA_VERSION else f"{_PREFIX}{version}"


def jar_set(set_name: str) -> tuple[Jar, ...]:
    """Return the jars of one named set; an unknown name is a ConfigurationError."""
    lock = read_lock()
    if set_name not in lock:
        raise ConfigurationError(f"no jar set is called {set_name!r}; there are: {', '.join(sorted(lock))}")
    return lock[set_name]
