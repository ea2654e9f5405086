"""Which cluster commands and questions are about, by the settings and a name that is given beside them."""

from drover.errors import ConfigurationError
from drover.events.commands import is_cluster_name
from drover.settings.settings import Settings


def cluster_of(settings: Settings, hint: str) -> str:
    """Return the cluster that the settings choose, or the only one; `hint` shows how to choose another.

    Raises `ConfigurationError` if several are configured and none is chosen.
    """
    if settings.cluster is not None:
        return checked_cluster(settings, settings.cluster)
    configured = sorted(settings.clusters)
    if len(configured) == 1:
        return configured[0]
    named = f" (configured: {', '.join(configured)})" if configured else ""
    raise ConfigurationError(f"choose a cluster with {hint}{named}")


def checked_cluster(settings: Settings, name: str) -> str:
    """Refuse a cluster that is not configured; a client whose settings name only the log may use any name."""
    checked_name(name)
    if settings.clusters and name not in settings.clusters:
        raise ConfigurationError(
            f"cluster {name} is not configured (configured: {', '.join(sorted(settings.clusters))}); "
            f"add [clusters.{name}] to the settings file"
        )
    return name


def checked_name(name: str) -> str:
    """Refuse what cannot be the name of a cluster."""
    if not is_cluster_name(name):
        raise ConfigurationError(
            f"{name!r} is not the name of a cluster: use lower case letters, digits, '.', '_' and '-'"
        )
    return name
