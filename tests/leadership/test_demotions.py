"""One broker demoted twice, for other topics or other times: no demotion takes back what another one asked for."""

from drover.events.refusals import RefusalCode
from tests.leadership.support import demote, restore, world
from tests.shard.world import World

FOR_MS = 10_000


def scope(made: World) -> tuple[str, ...] | None:
    return made.state.listings[3].topics


async def test_a_short_demotion_for_a_topic_leaves_a_lasting_one_as_it_is_and_says_so() -> None:
    made = world()
    await made.send(demote(3))
    outcome = await made.send(demote(3, topics=("t",), for_ms=FOR_MS, by="bob"))
    assert outcome.verdict == "accepted"
    assert "for all topics by ana until a command ends that already" in outcome.remarks[0]
    await made.run(2 * FOR_MS)
    assert made.state.blacklist == (3,)
    assert (scope(made), made.state.listings[3].until_ms) == (None, None)


async def test_a_short_demotion_for_more_topics_is_refused_where_it_would_end_a_lasting_one() -> None:
    made = world()
    await made.send(demote(3, topics=("t",)))
    for wider in (("other",), None):
        outcome = await made.send(demote(3, topics=wider, for_ms=FOR_MS))
        assert outcome.refusals[0].code is RefusalCode.UNSUPPORTED
        assert "broker 3 is listed for t by ana until a command ends that" in outcome.refusals[0].detail
    await made.run(2 * FOR_MS)
    assert scope(made) == ("t",)


async def test_a_later_end_holds_for_all_topics_of_a_broker_and_is_said() -> None:
    made = world()
    await made.send(demote(3, topics=("t",), for_ms=FOR_MS))
    outcome = await made.send(demote(3, topics=("other",)))
    assert "one end for all of its topics: that is later now" in outcome.remarks[0]
    await made.run(2 * FOR_MS)
    assert scope(made) == ("t", "other")


async def test_a_wider_demotion_with_a_later_end_takes_in_the_one_before_without_a_remark() -> None:
    made = world()
    await made.run(100)
    await made.send(demote(3, topics=("t",), for_ms=FOR_MS))
    assert not (await made.send(demote(3))).remarks
    assert (scope(made), made.state.listings[3].until_ms) == (None, None)


async def test_the_end_of_a_demotion_may_be_changed_for_the_same_topics_and_an_earlier_one_is_said() -> None:
    made = world()
    await made.send(demote(3))
    outcome = await made.send(demote(3, for_ms=FOR_MS))
    assert "it ends earlier now" in outcome.remarks[0]
    assert not (await made.send(demote(3, for_ms=2 * FOR_MS))).remarks
    await made.run(3 * FOR_MS)
    assert not made.state.blacklist


async def test_after_its_restore_a_broker_may_be_demoted_for_a_shorter_time() -> None:
    made = world()
    await made.send(demote(3))
    await made.send(restore(3))
    assert not (await made.send(demote(3, topics=("t",), for_ms=FOR_MS))).remarks
    await made.run(2 * FOR_MS)
    assert not made.state.blacklist


async def test_the_same_time_for_one_topic_after_the_other_is_refused_for_neither() -> None:
    """Both wait in one backlog: the second one's record is older than the decision about the first."""
    made = world()
    await made.run(100)
    made.put(demote(3, topics=("t",), for_ms=FOR_MS))
    made.put(demote(3, topics=("other",), for_ms=FOR_MS))
    made.model.advance(2000)
    await made.settle()
    assert [outcome.verdict for outcome in made.outcomes()[-2:]] == ["accepted", "accepted"]
    assert scope(made) == ("t", "other")
