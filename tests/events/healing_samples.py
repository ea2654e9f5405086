"""One value or more of every message about healing; see `tests.events.samples`."""

from drover.events import clusters, commands, healing
from drover.events.records import AnyEvent

HEAL_COMMANDS: dict[str, commands.AnyCommand] = {
    "heal-start": commands.HealCommand(
        id="h-1", cluster="local", by="ann", reason="it will not come back", action="start", broker=3
    ),
    "heal-skip": commands.HealCommand(
        id="h-2", cluster="local", by="ann", reason="new disks at noon", action="skip", broker=3
    ),
    "heal-stop": commands.HealCommand(
        id="h-3", cluster="local", by="ann", reason="it is back in a minute", action="stop", rollback=True
    ),
}

HEALING: dict[str, AnyEvent] = {
    "limits-set-to-heal": clusters.LimitsSet(
        cluster="local",
        max_partitions_in_flight=1250,
        max_moves_per_broker=5,
        max_replicas_per_step=1,
        healing=healing.HealingLimits(
            failure_interval_ms=1_800_000,
            alarm_ms=600_000,
            chunk_partitions=20,
            mass_failure_brokers=2,
            mass_failure_percent=10,
            max_bytes_per_day=1_000_000_000_000,
            flapping_returns=4,
            flapping_window_ms=7_200_000,
            rolls_back_on_return=True,
            throttle_bytes_per_second=50_000_000,
        ),
    ),
    "limits-set-to-heal-onto-disks": clusters.LimitsSet(
        cluster="local",
        max_partitions_in_flight=1250,
        max_moves_per_broker=5,
        max_replicas_per_step=1,
        healing=healing.HealingLimits(failure_interval_ms=1_800_000, disk_limit_percent=75),
    ),
    "broker-outage-noted": healing.BrokerOutageNoted(cluster="local", broker=3, seen=False),
    "broker-outage-ended": healing.BrokerOutageEnded(cluster="local", broker=3, why=healing.OutageEnd.RETURNED),
    "broker-outage-alarmed": healing.BrokerOutageAlarmed(cluster="local", broker=3, away_ms=900_100),
    "healing-braked": healing.HealingBraked(
        cluster="local",
        why=healing.BrakeReason.FLAPPING,
        detail="broker 3 came back 3 times within 60 minutes",
        broker=3,
    ),
    "healing-released": healing.HealingReleased(cluster="local", why=healing.BrakeReason.FLAPPING, broker=3),
    "heal-chosen": healing.HealChosen(
        cluster="local", broker=3, choice=healing.HealChoice.SKIP, by="ann", reason="new disks at noon"
    ),
    "heal-planned": healing.HealPlanned(
        cluster="local", heal="drover-heal-7", number=7, brokers=(3,), chunks=5, partitions=48, bytes=52_000_000_000
    ),
    "heal-chunk-planned": healing.HealChunkPlanned(
        cluster="local",
        heal="drover-heal-7",
        chunk=1,
        assignments=(
            healing.HealAssignment("orders", 0, "QBjRZu1kRSm0SVvmuSHUxg", (1, 2, 3), (1, 2, 4), 1_000_000_000),
        ),
    ),
    "heal-partitions-left": healing.HealPartitionsLeft(
        cluster="local",
        count=1,
        partitions=(healing.LeftPartition("logs", 4, healing.LeftReason.NO_LEADER, "it has no leader to copy from"),),
    ),
    "heal-chunk-begun": healing.HealChunkBegun(
        cluster="local",
        heal="drover-heal-7",
        chunk=1,
        plan="drover-heal-7-1",
        skipped=(healing.LeftPartition("orders", 3, healing.LeftReason.MOVING, "plan friday moves it to [1, 2, 4]"),),
        bytes=9_000_000_000,
    ),
    "heal-chunk-taken-back": healing.HealChunkTakenBack(
        cluster="local", heal="drover-heal-7", chunk=1, why="broker 3 is back"
    ),
    "heal-chunk-ended": healing.HealChunkEnded(
        cluster="local", heal="drover-heal-7", chunk=1, healed=7, cancelled=2, failed=1
    ),
    "heal-ended": healing.HealEnded(
        cluster="local", heal="drover-heal-7", why=healing.HealEnd.CANCELLED, dropped=3, leaves_rest=True
    ),
}
