"""Write the files of a cluster's nodes, and remove everything that the cluster wrote, but no file of the user's."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from drover.errors import ConfigurationError
from drover.local import security, settings
from drover.local.layout import (
    ADMIN,
    CONTROLLER,
    OPERATOR,
    WORKER,
    ZOOKEEPER,
    BrokerSpec,
    ClusterSpec,
    Layout,
    random_id,
)
from drover.settings.trusted_files import write_own


def check_directory(layout: Layout) -> None:
    """Refuse a directory that cannot be created or used, or whose drover.toml is the user's own; write nothing."""
    if "," in str(layout.directory) or not str(layout.directory).isprintable():
        raise ConfigurationError(
            f"{layout.directory} contains a comma, which separates directories in Kafka's settings, or an unprintable "
            "character; choose another --dir"
        )
    above = next(
        directory for directory in (layout.directory, *layout.directory.parents) if os.access(directory, os.F_OK)
    )
    if above.is_dir() and not os.access(above, os.W_OK | os.X_OK):
        raise ConfigurationError(f"{above} is not writable; choose another --dir")
    if above != layout.directory and not above.is_dir():
        raise ConfigurationError(f"{above} is a file, so {layout.directory} cannot be created; choose another --dir")
    if layout.directory.exists() and not layout.directory.is_dir():
        raise ConfigurationError(f"{layout.directory} is a file; choose another --dir")
    if not layout.spec_file.exists() and _holds_files(layout.nodes_directory):
        raise ConfigurationError(
            f"{layout.nodes_directory} was not created by `drover local up` and is left alone; move it or choose "
            "another --dir"
        )
    for file in layout.config_files:
        if file.exists() and not _is_ours(file):
            raise ConfigurationError(
                f"{file} was not written by `drover local up` and is left alone; move it or choose another --dir"
            )


def write_files(layout: Layout, spec: ClusterSpec, more_settings: Callable[[BrokerSpec], str]) -> None:
    """Write the settings of every node, and mark the brokers' log directories as formatted; harmless if repeated.

    The lines of `more_settings` come last, so that they override the others.
    """
    for node in spec.nodes:
        layout.data_directory(node).mkdir(parents=True, exist_ok=True)
    layout.logging_file.write_text(settings.LOGGING, encoding="utf-8")
    layout.old_logging_file.write_text(settings.OLD_LOGGING, encoding="utf-8")
    texts = {ZOOKEEPER: settings.zookeeper_settings(spec, layout.data_directory(ZOOKEEPER))}
    for node in spec.controllers:
        texts[node] = settings.controller_settings(spec, layout, node)
    for broker in spec.brokers:
        node = str(broker.id)
        texts[node] = settings.broker_settings(spec, layout, broker) + more_settings(broker)
        if not spec.in_zookeeper_mode:
            _mark_formatted(layout, spec, node)
    for node, text in texts.items():
        layout.settings_file(node).write_text(text, encoding="utf-8")
    if spec.secure:
        security.write_secrets(layout, spec)


def write_config(layout: Layout, spec: ClusterSpec) -> None:
    """Write the drover.toml for other commands, last of all: its existence shows that `up` has finished.

    In a secure cluster it is the worker's file, and every other user has a file beside it.
    """
    users = {layout.user_config_file(user): user for user in (OPERATOR, ADMIN)} if spec.secure else {}
    for file, user in {**users, layout.config_file: WORKER}.items():
        write_own(file, settings.drover_settings(spec, layout, user))


def is_formatted(layout: Layout) -> bool:
    """Whether an earlier `up` has formatted the first controller's log directory."""
    return (layout.data_directory(CONTROLLER) / "meta.properties").exists()


def format_other_controllers(layout: Layout, spec: ClusterSpec) -> None:
    """Format the other controllers by copying the first one's bootstrap records; harmless if repeated."""
    for node in spec.controllers[1:]:
        for file in layout.data_directory(CONTROLLER).glob("bootstrap.*"):
            shutil.copyfile(file, layout.data_directory(node) / file.name)
        _mark_formatted(layout, spec, node)


def _mark_formatted(layout: Layout, spec: ClusterSpec, node: str) -> None:
    marker = layout.data_directory(node) / "meta.properties"
    if not marker.exists():
        marker.write_text(settings.format_marker(spec, node, random_id()), encoding="utf-8")


def _holds_files(directory: Path) -> bool:
    """Whether a directory holds regular files; links to other disks do not count, because they can be made again."""
    return any(entry.is_file() and not entry.is_symlink() for entry in directory.rglob("*"))


def remove_files(layout: Layout) -> None:
    """Remove the cluster's files, the spec last because it holds the ports, and then the directory if it is empty.

    The spec is also written first, so that a directory without one holds no file of a cluster.
    """
    if not layout.spec_file.exists():
        return
    if layout.nodes_directory.exists():
        shutil.rmtree(layout.nodes_directory)
    for file in layout.config_files:
        if _is_ours(file):
            file.unlink()
    layout.spec_file.unlink()
    if layout.directory.exists() and not any(layout.directory.iterdir()):
        layout.directory.rmdir()


def log_tail(layout: Layout, node: str, lines: int = 30) -> str:
    """Return the last lines of a node's log; empty if it has none."""
    file = layout.log_file(node)
    if not file.exists():
        return ""
    return "\n".join(file.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _is_ours(file: Path) -> bool:
    return file.exists() and file.read_text(encoding="utf-8").startswith(settings.CONFIG_HEADER)
