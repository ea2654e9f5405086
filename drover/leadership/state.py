"""The slice of the state that says which brokers should not lead."""

from dataclasses import dataclass

from drover.state.declared import ClusterSlice, recorded


@dataclass(eq=False)
class LeadershipState(ClusterSlice):
    """The complete list of brokers that should not lead, as it was last set (R491-1)."""

    blacklist: tuple[int, ...] = recorded("blacklist", (), told_as=("blacklist",))
