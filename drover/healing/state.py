"""The slice of the state that says which brokers are known to have failed."""

from dataclasses import dataclass

from drover.state.declared import ClusterSlice, items_by_key, recorded


@dataclass(eq=False)
class HealingState(ClusterSlice):
    """Failed brokers with the time (ms since epoch) that the first report named (R46-1)."""

    failed_brokers: dict[int, int] = recorded(
        "failed_brokers", factory=dict, content=items_by_key, told_as=("failed broker", "failed", "returned")
    )
