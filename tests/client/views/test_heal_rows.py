"""What people read about absent brokers and about healing."""

from drover.client.views.heal_rows import heal_document, heal_lines, outage_rows
from drover.client.views.status_rows import notices
from drover.events.healing import (
    BrakeReason,
    BrokerOutageEnded,
    BrokerOutageNoted,
    HealAssignment,
    HealChoice,
    HealChunkBegun,
    HealChunkEnded,
    HealChunkPlanned,
    HealEnd,
    HealEnded,
    HealingLimits,
    HealPlanned,
    LeftPartition,
    LeftReason,
    OutageEnd,
)
from drover.events.partitions import TopicPartition
from drover.fold.evolve import apply
from drover.state.cluster import ClusterState
from drover.state.healing import Absence, Brake, Heal, HealChunk, HealedBroker, LeftBehind, RunningChunk
from drover.state.scheduling import Freeze, Limits


def state_with(**outages: Absence) -> ClusterState:
    state = ClusterState("prod")
    state.limits = Limits(healing=HealingLimits(failure_interval_ms=1000))
    state.absent_brokers = {int(name[1:]): outage for name, outage in outages.items()}
    return state


def said(state: ClusterState) -> dict[int, str]:
    return {row.broker: row.state for row in outage_rows(state)}


def test_each_absence_says_since_when_and_when_it_is_healed() -> None:
    (row,) = outage_rows(state_with(_3=Absence(500, seen=True)))
    assert (row.broker, row.since_ms, row.heals_at_ms, row.state) == (3, 500, 1500, "away")
    (row,) = outage_rows(state_with(_3=Absence(500, seen=True, choice=HealChoice.SKIP)))
    assert row.heals_at_ms is None
    never = state_with(_3=Absence(500, seen=True))
    never.limits = Limits(healing=HealingLimits())
    assert outage_rows(never)[0].heals_at_ms is None


def test_each_absence_says_what_is_done_about_it() -> None:
    state = state_with(
        _1=Absence(0),
        _2=Absence(0, seen=True, is_alarmed=True),
        _3=Absence(0, seen=True, choice=HealChoice.START),
        _4=Absence(0, seen=True, choice=HealChoice.SKIP),
        _5=Absence(0, seen=True),
        _6=Absence(0, seen=True),
    )
    state.heal = Heal("drover-heal-7", (5,), 4, 17, 0, 0)
    state.healing_brakes["flapping:6"] = Brake(BrakeReason.FLAPPING, "it came back 4 times", 0, 6)
    found = said(state)
    assert found[1] == "reported as failed, but not seen to be away yet"
    assert found[2] == "alarmed about"
    assert found[3] == "is to be healed now"
    assert found[4].startswith("is skipped")
    assert found[5] == "is healed by drover-heal-7"
    assert found[6] == "held back, flapping: it came back 4 times"
    state.freeze = Freeze("ana", "incident 7", 0)
    assert said(state)[2].startswith("withheld, frozen by ana (")


def test_what_goes_on_and_what_is_left_is_told() -> None:
    state = state_with(_3=Absence(0, seen=True))
    state.heal = Heal("drover-heal-7", (3,), 4, 17, 0, 0, 4, 5, 0, 0, 1)
    state.heal_chunks[4] = HealChunk("drover-heal-7", 4, ())
    key = TopicPartition("logs", 0)
    state.heal_running = RunningChunk("drover-heal-7", 3, 4, "drover-heal-7-3", (3,), (key,), 0)
    state.heal_left = LeftBehind(1, (LeftPartition("logs", 2, LeftReason.NO_LEADER, "it has no leader"),))
    state.emptied_brokers[8] = 0
    lines = "\n".join(heal_lines(state))
    assert "3 of 4 chunks begun, 5 of 17 partitions healed, 1 skipped" in lines
    assert "chunk 3 of 4 is under way as plan drover-heal-7-3" in lines
    assert "logs:2: no-leader: it has no leader" in lines
    assert "`drover plan add 8`" in lines
    document = heal_document(state, 0)
    assert document["heal"]["name"] == "drover-heal-7"
    assert document["emptied_brokers"] == [8]


def test_without_a_section_nothing_is_claimed() -> None:
    state = ClusterState("prod")
    assert outage_rows(state) == []
    (line,) = heal_lines(state)
    assert line == (
        "prod: healing is not set up, and absent brokers are not noticed: add [clusters.prod.healing] and restart the "
        "workers"
    )


def test_whether_healing_is_on_is_said_first() -> None:
    state = state_with()
    assert next(iter(heal_lines(state))) == "prod: healing is on: a broker that is away for 1 s is healed"
    state.limits = Limits(healing=HealingLimits(failure_interval_ms=-1))
    assert next(iter(heal_lines(state))).startswith(
        "prod: healing is off (failure_interval_ms = -1): absent brokers are recorded"
    )


def test_a_broker_that_was_healed_is_away_until_it_is_back_and_what_was_healed_is_said() -> None:
    state = state_with(_3=Absence(500, seen=True))
    for event in (
        HealPlanned(cluster="prod", heal="drover-heal-1", number=1, brokers=(3,), chunks=1, partitions=1),
        HealChunkPlanned(
            cluster="prod",
            heal="drover-heal-1",
            chunk=1,
            assignments=(HealAssignment("orders", 0, "id", (1, 2, 3), (1, 2, 4)),),
        ),
        HealChunkBegun(cluster="prod", heal="drover-heal-1", chunk=1, plan="drover-heal-1-1"),
        HealChunkEnded(cluster="prod", heal="drover-heal-1", chunk=1, healed=1),
    ):
        apply(state, event, 2000)
    (row,) = outage_rows(state)
    assert (row.healed_partitions, row.healed_ms) == (1, None)
    apply(state, HealEnded(cluster="prod", heal="drover-heal-1", why=HealEnd.DONE), 2500)
    apply(state, BrokerOutageEnded(cluster="prod", broker=3, why=OutageEnd.NOT_ASSIGNED), 3000)
    (row,) = outage_rows(state)
    assert (row.broker, row.since_ms, row.healed_ms, row.healed_partitions) == (3, 500, 3000, 1)
    assert row.state == "healed by drover-heal-1: 1 partition moved to other brokers"
    assert "prod: brokers that were healed and are still away: 3: `drover heal status`" in notices(state)
    apply(state, BrokerOutageEnded(cluster="prod", broker=3, why=OutageEnd.RETURNED), 4000)
    assert (outage_rows(state), state.healed_brokers) == ([], {})


def test_what_was_healed_in_one_absence_is_not_said_of_the_next() -> None:
    state = state_with(_3=Absence(500, seen=True))
    state.healed_brokers[3] = HealedBroker(500, "drover-heal-1", 7)
    apply(state, BrokerOutageEnded(cluster="prod", broker=3, why=OutageEnd.NOT_ASSIGNED), 3000)
    apply(state, BrokerOutageNoted(cluster="prod", broker=3), 4000)
    (row,) = outage_rows(state)
    assert (row.state, row.since_ms, row.healed_partitions) == ("away", 4000, 0)
