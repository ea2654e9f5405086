"""Reserve ports so that clusters on one machine never share one, also when started at the same moment.

A list of all cluster directories of this user is kept in the cache; the ports in their specs are taken, whether or not
something listens just now (a killed broker wants its port back). Choosing and remembering happen under one file lock.
"""

import json
import random
import socket
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from drover.errors import ConfigurationError
from drover.jars import cache_directory, writable_directory
from drover.local.layout import HOST, ClusterSpec, Layout, read_spec, write_spec

# Below Linux's ephemeral ports (32768 and up): no outgoing connection can take one while its broker is down.
LOWEST_PORT, HIGHEST_PORT = 20_000, 32_000


def reserve(layout: Layout, count: int, make_spec: Callable[[tuple[int, ...]], ClusterSpec]) -> ClusterSpec:
    """Choose `count` free ports, make the cluster's spec of them and remember it; `down` gives them back."""
    registry = writable_directory(cache_directory()) / "local-clusters.json"
    with FileLock(registry.with_suffix(".lock")):
        known = _known_clusters(registry)
        taken = frozenset[int]().union(*(spec.ports for spec in known.values()))
        spec = make_spec(_choose(count, taken))
        write_spec(layout, spec)
        directories = sorted(str(path) for path in {*known, layout.directory})
        part = registry.with_suffix(".json.part")
        part.write_text(json.dumps(directories, indent=1), encoding="utf-8")
        part.replace(registry)
    return spec


def _known_clusters(registry: Path) -> dict[Path, ClusterSpec]:
    """Return the directories that still hold a cluster; those that were taken down drop out."""
    try:
        directories = [Path(path) for path in json.loads(registry.read_text(encoding="utf-8"))]
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    known = {}
    for directory in directories:
        try:
            spec = read_spec(Layout(directory))
        except (ConfigurationError, PermissionError):
            continue  # what was written there is another cluster's business; its ports are still tried by bind
        if spec is not None:
            known[directory] = spec
    return known


def _choose(count: int, taken: frozenset[int]) -> tuple[int, ...]:
    """Return free ports, from a random start so that clusters of different users do not meet either."""
    span = HIGHEST_PORT - LOWEST_PORT
    start = random.randrange(span)  # noqa: S311 - spreads, protects nothing
    chosen: list[int] = []
    for step in range(span):
        port = LOWEST_PORT + (start + step) % span
        if port not in taken and is_free(port):
            chosen.append(port)
            if len(chosen) == count:
                return tuple(chosen)
    raise ConfigurationError(f"no {count} free ports between {LOWEST_PORT} and {HIGHEST_PORT} on {HOST}")


def is_free(port: int) -> bool:
    """Tell whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
