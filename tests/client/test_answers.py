"""Finding what became of a command: only what counts is believed."""

import pytest

from drover.client.answers import Answer, Answers, Sent
from drover.events.commands import Freeze
from drover.events.records import Outcome
from drover.fold.log import ShardFold
from tests.client.log import CLUSTER, Writer, outcome


def sent(id_: str, offset: int) -> Sent:
    return Sent(Freeze(id=id_, cluster=CLUSTER, by="me", reason="why"), "drover.cancel", 0, offset)


def answer_of(writer: Writer, wanted: Sent) -> Answer | None:
    answers = Answers([wanted])
    fold = ShardFold(0, 1)
    for offset, payload in enumerate(writer.records):
        folded = fold.fold(offset, payload)
        assert folded is not None
        answers.see(folded, 0)
    assert answers.complete is (answers.answer(wanted) is not None)
    return answers.answer(wanted)


def recorded(outcomes: tuple[Outcome, ...]) -> Writer:
    writer = Writer()
    writer.begin()
    for one in outcomes:
        writer.say(outcomes=(one,))
    return writer


def test_the_outcome_is_the_one_of_this_very_record() -> None:
    writer = recorded((outcome("f", 3), outcome("g", 4)))
    found = answer_of(writer, sent("g", 4))
    assert found is not None
    assert (found.offset, found.outcome.id, found.repeated) == (3, "g", False)
    assert answer_of(writer, sent("f", 9)) is None


def test_a_duplicate_leads_to_the_first_outcome() -> None:
    writer = recorded((outcome("f", 3), outcome("f", 4, verdict="duplicate", first_offset=2)))
    found = answer_of(writer, sent("f", 4))
    assert found is not None
    assert (found.offset, found.outcome.verdict, found.repeated) == (2, "accepted", True)


def test_a_duplicate_in_the_same_record_leads_to_its_neighbour() -> None:
    writer = Writer()
    writer.begin()
    writer.say(outcomes=(outcome("f", 3, verdict="refused"), outcome("f", 4, verdict="duplicate")))
    found = answer_of(writer, sent("f", 4))
    assert found is not None
    assert (found.outcome.verdict, found.repeated) == ("refused", True)


def test_what_a_fenced_owner_wrote_is_not_believed() -> None:
    writer = Writer()
    writer.begin("w1")
    late = writer.batch(outcomes=(outcome("f", 3),))
    writer.acquire("w2")
    writer.append(late)
    assert answer_of(writer, sent("f", 3)) is None
    writer.say(outcomes=(outcome("f", 3, verdict="refused"),))
    found = answer_of(writer, sent("f", 3))
    assert found is not None
    assert found.outcome.verdict == "refused"


def test_awaiting_many_outcomes_looks_at_each_command_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """With each record all that had an outcome were looked at again: 8,000 commands took five seconds."""
    looked: list[Sent] = []
    look = Answers.answer

    def counting(self: Answers, one: Sent) -> Answer | None:
        looked.append(one)
        return look(self, one)

    monkeypatch.setattr(Answers, "answer", counting)
    wanted = [sent(f"f{number}", number) for number in range(100)]
    writer = recorded(tuple(outcome(one.command.id, one.offset) for one in wanted))
    answers, fold = Answers(wanted), ShardFold(0, 1)
    for offset, payload in enumerate(writer.records):
        assert not answers.complete
        folded = fold.fold(offset, payload)
        assert folded is not None
        answers.see(folded, 0)
    assert answers.complete
    assert len(looked) < 3 * len(wanted) + 10
    assert [answer.outcome.id for answer in answers.found()] == [one.command.id for one in wanted]
