"""Names as commands may write them."""

from msgspec import ValidationError, convert

from events.commands import ClusterName


def is_cluster_name(name: str) -> bool:
    """Tell whether a command could name this cluster."""
    try:
        convert(name, ClusterName)
    except ValidationError:
        return False
    return True
