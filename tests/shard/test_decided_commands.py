"""The register of command ids: bounded, and a flood shortens nobody's memory but its own."""

import sys

import pytest

from drover.fold import decided_commands
from drover.fold.decided_commands import DecidedCommand, DecidedCommands, source_of


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided_commands, "MOST_PER_SOURCE", 20)
    monkeypatch.setattr(decided_commands, "MOST_PER_CLUSTER", 50)


def add(register: DecidedCommands, id_: str, by: str, at_ms: int = 1) -> None:
    register.add(("local", id_), DecidedCommand(id_.encode(), at_ms, at_ms, source_of(by), by))


def ids(register: DecidedCommands) -> set[str]:
    return {id_ for (_, id_), _ in register.items()}


@pytest.mark.usefixtures("small")
def test_a_flood_pushes_out_its_own_oldest_ids_and_nobody_elses() -> None:
    register = DecidedCommands()
    for number in range(5):
        add(register, f"quiet-{number}", "ann")
    for number in range(1000):
        add(register, f"flood-{number}", "watchdog")
    assert len(register) == 25
    assert {f"quiet-{number}" for number in range(5)} <= ids(register)
    assert {f"flood-{number}" for number in range(980, 1000)} <= ids(register)


@pytest.mark.usefixtures("small")
def test_many_sources_share_what_a_cluster_may_have_and_the_largest_gives_way() -> None:
    register = DecidedCommands()
    for number in range(15):
        for source in ("ann", "bob", "eve", "joe", "kim"):
            add(register, f"{source}-{number}", source)
    assert len(register) == 50
    assert {id_.split("-")[0] for id_ in ids(register)} == {"ann", "bob", "eve", "joe", "kim"}
    add(register, "late", "zoe")
    assert "late" in ids(register)
    assert len(register) == 50


def test_what_is_known_does_not_change_when_it_comes_again_and_does_after_seven_days() -> None:
    register = DecidedCommands()
    add(register, "a", "ann", 1)
    add(register, "a", "bob", 2)
    found = register.get(("local", "a"))
    assert found is not None
    assert found.at_ms == 1
    add(register, "a", "bob", 1 + decided_commands.IDENTITY_RETENTION_MS)
    found = register.get(("local", "a"))
    assert found is not None
    assert found.at_ms == 1 + decided_commands.IDENTITY_RETENTION_MS
    assert len(register) == 1


def test_an_id_that_comes_again_behind_one_from_the_future_is_known_once() -> None:
    """A wrong clock has dated a command a year ahead, and was put right: what follows is older than that."""
    register = DecidedCommands()
    week, year = decided_commands.IDENTITY_RETENTION_MS, 52 * decided_commands.IDENTITY_RETENTION_MS
    add(register, "ahead", "ann", year)
    add(register, "a", "ann", 1)
    add(register, "a", "ann", 2 + week)
    assert [id_ for (_, id_), _ in register.items()] == ["ahead", "a"]
    register.expire(year + 2 * week)
    assert len(register) == 0


def test_a_copy_is_independent_and_equal() -> None:
    register = DecidedCommands()
    add(register, "a", "ann")
    twin = register.copy()
    assert list(twin.items()) == list(register.items())
    add(twin, "b", "ann")
    assert len(register) == 1
    twin.expire(2 + decided_commands.IDENTITY_RETENTION_MS)
    assert (len(twin), len(register)) == (0, 1)


def test_one_takes_less_than_half_of_what_it_took() -> None:
    """478 bytes each were measured before: a struct, two keys, an entry of a queue."""
    register = DecidedCommands()
    count = 10_000
    for number in range(count):
        add(register, f"alter-20261120T150405-{number:08x}", "ann@host")
    (commands,) = register._clusters.values()
    packed = sum(sys.getsizeof(id_) + sys.getsizeof(one) for id_, one in commands.packed.items())
    queues = sum(sys.getsizeof(queue) for queue in commands.by_source.values())
    assert (packed + queues + sys.getsizeof(commands.packed)) / count < 239
