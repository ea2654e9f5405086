"""Samples of the messages about limits, holds, pauses and priorities; see `tests.events.samples`."""

from drover.events import clusters, plans, reassignments, records
from drover.events.reassignments import Call

EVENTS: dict[str, records.AnyEvent] = {
    "limits-set-budgets": clusters.LimitsSet(
        cluster="local",
        max_partitions_in_flight=1250,
        max_moves_per_broker=5,
        max_replicas_per_step=1,
        budgets=clusters.Budgets(4, 3, 200, 500_000_000_000),
    ),
    "limits-set-racks": clusters.LimitsSet(
        cluster="local",
        max_partitions_in_flight=1250,
        max_moves_per_broker=5,
        max_replicas_per_step=1,
        budgets=clusters.Budgets(max_moves_per_rack=20),
    ),
    "window-closed": clusters.WindowClosed(
        cluster="local", windows="mon-fri 22:00-05:00 Europe/Berlin", opens_at_ms=1_772_485_200_000
    ),
    "window-opened": clusters.WindowOpened(cluster="local"),
    "plan-windows-set": clusters.PlanWindowsSet(
        cluster="local", plan="friday", windows="sat,sun 00:00-24:00", by="ann", reason="at weekends"
    ),
    "window-closed-of-a-plan": clusters.WindowClosed(
        cluster="local", windows="sat,sun 00:00-24:00", opens_at_ms=1_772_841_600_000, plan="friday"
    ),
    "window-opened-of-a-plan": clusters.WindowOpened(cluster="local", plan="friday"),
    "limits-changed": clusters.LimitsChanged(
        cluster="local",
        by="ann",
        reason="a quiet night",
        changed=(
            clusters.LimitChange("max_moves_per_broker", 5, 10),
            clusters.LimitChange("stepping", "grow", "swap"),
            clusters.LimitChange("heal.max_bytes_per_day", 1_000_000_000, None),
        ),
        reset=(clusters.LimitChange("lazy_leadership", True, False),),
    ),
    "broker-held": clusters.BrokerHeld(
        cluster="local", broker=4, by="ann", reason="its disk is slow", role=clusters.HoldRole.DESTINATION
    ),
    "broker-released": clusters.BrokerReleased(cluster="local", broker=4, by="bob", reason="a new disk"),
    "plan-opened-urgently": plans.PlanOpened(
        cluster="local", plan="friday", by="ann", reason="a disk fails", priority=plans.Priority.HIGH
    ),
    "plan-extended-urgently": plans.PlanExtended(cluster="local", plan="friday", priority=plans.Priority.LOW),
    "plan-paused": plans.PlanPaused(cluster="local", plan="friday", by="ann", reason="a busy hour"),
    "plan-resumed": plans.PlanResumed(cluster="local", plan="friday", by="bob", reason="it is over"),
    "step-prepared-of-known-size": reassignments.StepPrepared(
        cluster="local",
        topic="orders",
        partition=0,
        step=1,
        final=True,
        expected=(1, 2, 3),
        replicas=(2, 3, 4),
        leader=1,
        copy_bytes=1_000_000,
    ),
    "call-intended-of-known-size": reassignments.CallIntended(
        cluster="local",
        topic="orders",
        partition=0,
        call=Call.STEP,
        expected=(1, 2, 3),
        replicas=(2, 3, 4),
        step=1,
        final=True,
        leader=1,
        copy_bytes=1_000_000,
    ),
}
