"""PURE: the message about groups of workers that share a log and so take its shards from each other."""

from collections.abc import Collection


def ownership_conflict_in_words(groups: Collection[str], shards: str) -> str:
    """Say which groups take `shards` from each other, and how to end it."""
    count = "two" if len(groups) == 2 else f"{len(groups):,}"
    return (
        f"{count} groups of workers ({', '.join(sorted(groups))}) take {shards} from each other: "
        "give all of them the same worker.group"
    )
