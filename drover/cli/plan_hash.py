"""`drover alter --plan-hash`: hold the cluster to what a proposal was made for, right before it is submitted."""

from drover.cli.exits import ExitCode, Failure
from drover.cli.invocation import Invocation
from drover.cli.model_source import Source, read_model
from drover.cli.plan_file import PlanFile, lists_of
from drover.events.commands import PartitionTarget
from drover.planner.assess import basis_of, changes, digest_of
from drover.planner.model import ClusterModel


def hold_to_hash(invocation: Invocation, plan: PlanFile, name: str, wanted: str) -> tuple[PartitionTarget, ...]:
    """Look at the cluster and return the plan's partitions, each with its present list asserted.

    The assertion guards the time from here on: whoever decides the command refuses a partition whose list has changed.
    Raises `Failure` with `GUARDED` that says what has changed.
    """
    lists = lists_of(plan, name)
    model = read_model(invocation, Source(), with_log=False)
    present = basis_of(model, lists)
    if digest_of(present, lists) == wanted:
        return tuple(_asserted(target, model) for target in plan.targets)
    raise Failure(_difference(plan, name, wanted, model), ExitCode.GUARDED)


def _asserted(target: PartitionTarget, model: ClusterModel) -> PartitionTarget:
    found = model.partition_by_name.get((target.topic, target.partition))
    if found is None:
        return target
    return PartitionTarget(
        topic=target.topic, partition=target.partition, replicas=target.replicas, original_replicas=found.replicas
    )


def _difference(plan: PlanFile, name: str, wanted: str, model: ClusterModel) -> str:
    lists = lists_of(plan, name)
    again = "make the plan anew, or judge it with `drover plan check`"
    if plan.proposal is None:
        return (
            f"{name} has another hash than {wanted} in this cluster now: the file or the cluster has changed, and the "
            f"file does not tell what the cluster was like; nothing was submitted: {again}"
        )
    made_for = digest_of(plan.proposal.basis, lists)
    if made_for != wanted:
        return f"{name} is not the plan {wanted}: its hash is {made_for}; nothing was submitted"
    found = changes(plan.proposal.basis, basis_of(model, lists))
    told = "".join(f"\n  {change}" for change in found)
    return f"the cluster is not what {name} was made for; nothing was submitted: {again}{told}"
