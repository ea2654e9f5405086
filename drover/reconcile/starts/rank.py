"""The order among what waits."""

from typing import NamedTuple


class Rank(NamedTuple):
    """In flight (tier 0) before pending (1); within a plan what is at the busiest port, then the largest copy.

    `port` and `size` are bytes, negative so that the most comes first. Then the order of acceptance counts. Plans take
    turns beside that, see `drover.reconcile.starts.shares`; what is in flight takes its turn before all of them.
    """

    tier: int
    port: int
    size: int
    number: int
    plan: str

    @property
    def lane(self) -> "Lane":
        """The line that it waits in: one for all that is in flight, and one for each plan of what is pending."""
        return (self.tier, self.plan if self.tier else "")


Lane = tuple[int, str]
