"""Tools for tests with Drover: whole installations, in memory or on a real local cluster, and pytest fixtures.

docs/testing-your-tools.md shows them. The names below are imported on their first use, since pytest imports this
package for its plugin in every run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drover.testing.commands import DroverProcess, Finished
    from drover.testing.in_memory import (
        ModelClient,
        ModelInstallation,
        ModelProcess,
        ModelSettings,
        WorkerEndedError,
        model_installation,
    )
    from drover.testing.local import (
        LocalClusterSettings,
        LocalInstallation,
        LocalSettings,
        local_installation,
        wait_for,
    )
    from drover.testing.model import ClusterModel

__all__ = [
    "ClusterModel",
    "DroverProcess",
    "Finished",
    "LocalClusterSettings",
    "LocalInstallation",
    "LocalSettings",
    "ModelClient",
    "ModelInstallation",
    "ModelProcess",
    "ModelSettings",
    "WorkerEndedError",
    "local_installation",
    "model_installation",
    "wait_for",
]

_MODULES = {
    "ClusterModel": "model",
    "DroverProcess": "commands",
    "Finished": "commands",
    "LocalClusterSettings": "local",
    "LocalInstallation": "local",
    "LocalSettings": "local",
    "ModelClient": "in_memory",
    "ModelInstallation": "in_memory",
    "ModelProcess": "in_memory",
    "ModelSettings": "in_memory",
    "WorkerEndedError": "in_memory",
    "local_installation": "local",
    "model_installation": "in_memory",
    "wait_for": "local",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
