"""Reserve ports so that clusters on one machine never share one, even if they are started at the same time.

The cache holds a list of all cluster directories of this user. The ports in their specs are taken, even if no process
listens on them, because a killed broker needs its port again. A file lock guards choosing and storing.
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

# Below Linux's ephemeral ports (32768 and up), so that no outgoing connection takes a port while its broker is down.
LOWEST_PORT, HIGHEST_PORT = 20_000, 32_000


def reserve(layout: Layout, count: int, make_spec: Callable[[tuple[int, ...]], ClusterSpec]) -> ClusterSpec:
    """Choose `count` free ports, and create and store the cluster's spec with them; `down` frees them."""
    registry = writable_directory(cache_directory()) / "local-clusters.json"
    with FileLock(registry.with_suffix(".lock")):
        clusters = _known_clusters(registry)
        taken = frozenset[int]().union(*(spec.ports for spec in clusters.values()))
        spec = make_spec(_choose(count, taken))
        write_spec(layout, spec)
        directories = sorted(str(path) for path in {*clusters, layout.directory})
        part = registry.with_suffix(".json.part")
        part.write_text(json.dumps(directories, indent=1), encoding="utf-8")
        part.replace(registry)
    return spec


def _known_clusters(registry: Path) -> dict[Path, ClusterSpec]:
    """Return the directories that still hold a cluster."""
    try:
        directories = [Path(path) for path in json.loads(registry.read_text(encoding="utf-8"))]
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    clusters = {}
    for directory in directories:
        try:
            spec = read_spec(Layout(directory))
        except (ConfigurationError, PermissionError):
            continue  # an unreadable spec of another cluster; binding shows whether its ports are free
        if spec is not None:
            clusters[directory] = spec
    return clusters


def _choose(count: int, taken: frozenset[int]) -> tuple[int, ...]:
    """Return free ports, from a random start, so that clusters of different users rarely collide."""
    span = HIGHEST_PORT - LOWEST_PORT
    start = random.randrange(span)  # noqa: S311 - not for security
    chosen: list[int] = []
    for step in range(span):
        port = LOWEST_PORT + (start + step) % span
        if port not in taken and is_free(port):
            chosen.append(port)
            if len(chosen) == count:
                return tuple(chosen)
    raise ConfigurationError(f"no {count} free ports between {LOWEST_PORT} and {HIGHEST_PORT} on {HOST}")


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
