"""A trial decides as an owner would, and changes nothing."""

from drover.decide.decision import OwnTopics
from drover.decide.trial import partitions_to_see, trial
from drover.events.commands import Alter, PartitionTarget
from drover.events.partitions import TopicPartition
from drover.state.hashing import state_hash
from tests.shard.world import CLUSTER, World, alter

FIRST, SECOND, THIRD = (TopicPartition("orders", number) for number in range(3))


async def tried(made: World, *commands: Alter) -> list[tuple[int, int, list[str]]]:
    """What would be accepted, unchanged and refused of each."""
    wanted = partitions_to_see(commands, made.state)
    seen = await made.driver.observe(wanted, with_min_isr=True)
    before = state_hash({CLUSTER: made.state})
    decisions = trial(commands, made.state, seen, OwnTopics(), made.now.wall_ms)
    assert state_hash({CLUSTER: made.state}) == before
    return [
        (len(one.accepted), len(one.unchanged), [refusal.code.value for refusal in one.refusals]) for one in decisions
    ]


async def test_it_refuses_what_the_owner_refuses_and_nothing_else() -> None:
    made = World(brokers=5)
    made.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1]}, partition_bytes=1000)
    command = alter({FIRST: [4, 2, 3], SECOND: [2, 3, 1], THIRD: [1, 2, 3]}, id="p")
    dead = alter({FIRST: [1, 2, 9]}, id="dead")
    found = await tried(made, command, dead)
    assert found == [(1, 1, ["unknown-topic-or-partition"]), (0, 0, ["invalid-replica-assignment"])]
    outcome = await made.send(command)
    assert (len(outcome.accepted), len(outcome.unchanged)) == (1, 1)
    assert [refusal.code.value for refusal in outcome.refusals] == found[0][2]


async def test_it_knows_what_the_log_says_and_what_the_commands_before_would_do() -> None:
    made = World(brokers=5, joins_by_itself=False)
    made.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000)
    await made.send(alter({FIRST: [4, 2, 3]}, id="p"))
    await made.settle()
    stop = alter({FIRST: None}, id="stop")
    nothing = alter({FIRST: None}, id="nothing-left")
    first, second = await tried(made, stop, nothing)
    assert first[0] == 1
    assert second[0] == 0
    target = PartitionTarget(topic="orders", partition=0, replicas=(5, 2, 3), original_replicas=(3, 2, 1))
    asserted = Alter(id="q", cluster=CLUSTER, by="ana", reason="r", partitions=(target,))
    (differs,) = await tried(made, asserted)
    assert differs[2] == ["original-replicas-differ"]
