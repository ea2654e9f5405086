"""Write what the nodes of a cluster read, and remove all that a cluster wrote; never a file of the user's."""

import shutil

from drover.errors import ConfigurationError
from drover.local import settings
from drover.local.layout import CONTROLLER, ZOOKEEPER, ClusterSpec, Layout, random_id


def check_directory(layout: Layout) -> None:
    """Refuse a directory whose drover.toml is the user's own, before anything is written there."""
    if layout.directory.exists() and not layout.directory.is_dir():
        raise ConfigurationError(f"{layout.directory} is a file; choose another --dir")
    if layout.config_file.exists() and not _is_ours(layout):
        raise ConfigurationError(
            f"{layout.config_file} was not written by `drover local up` and is left alone; move it or "
            "choose another --dir"
        )


def write_files(layout: Layout, spec: ClusterSpec) -> None:
    """Write the settings of every node and mark the brokers' log directories as formatted; harmless when repeated."""
    for node in spec.nodes:
        layout.data_directory(node).mkdir(parents=True, exist_ok=True)
    layout.logging_file.write_text(settings.LOGGING, encoding="utf-8")
    texts = {
        CONTROLLER: settings.controller_settings(spec, layout.data_directory(CONTROLLER)),
        ZOOKEEPER: settings.zookeeper_settings(spec, layout.data_directory(ZOOKEEPER)),
    }
    for broker in spec.brokers:
        node = str(broker.id)
        texts[node] = settings.broker_settings(spec, broker, layout.data_directory(node))
        marker = layout.data_directory(node) / "meta.properties"
        if not marker.exists():
            marker.write_text(settings.format_marker(spec, node, random_id()), encoding="utf-8")
    for node, text in texts.items():
        layout.settings_file(node).write_text(text, encoding="utf-8")


def write_config(layout: Layout, spec: ClusterSpec) -> None:
    """Write the drover.toml that other commands are pointed at."""
    layout.config_file.write_text(settings.drover_settings(spec), encoding="utf-8")


def is_formatted(layout: Layout) -> bool:
    """Tell whether the controller's log directory was formatted by an earlier `up`."""
    return (layout.data_directory(CONTROLLER) / "meta.properties").exists()


def remove_files(layout: Layout) -> None:
    """Remove what the cluster wrote, the spec last (it holds the ports), and the directory if that leaves it empty."""
    if layout.nodes_directory.exists():
        shutil.rmtree(layout.nodes_directory)
    if _is_ours(layout):
        layout.config_file.unlink()
    layout.spec_file.unlink(missing_ok=True)
    if layout.directory.exists() and not any(layout.directory.iterdir()):
        layout.directory.rmdir()


def log_tail(layout: Layout, node: str, lines: int = 30) -> str:
    """Return the last lines of a node's log, empty when it wrote none."""
    file = layout.log_file(node)
    if not file.exists():
        return ""
    return "\n".join(file.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _is_ours(layout: Layout) -> bool:
    file = layout.config_file
    return file.exists() and file.read_text(encoding="utf-8").startswith(settings.CONFIG_HEADER)
