"""The pieces of documents: in the right order, and their bytes counted, whatever comes and goes; and their marks."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drover.projections.entries import Members
from drover.projections.listings import Listing, TopicListings
from drover.projections.position import Place, is_marked, mark_of
from drover.projections.reassignment_document import Blocked, Deferred, ReassignmentDocument

NAMES = st.integers(0, 12).map(str)
CHANGES = st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=6)), max_size=60)


@given(CHANGES)
def test_members_are_joined_by_the_order_of_their_names(changes: list[tuple[str, bytes | None]]) -> None:
    members, wanted = Members[str](), dict[str, bytes]()
    for name, member in changes:
        if member is None:
            members.drop(name)
            wanted.pop(name, None)
        else:
            members.put(name, member)
            wanted[name] = member
        assert members.by_key == wanted
        assert members.size == sum(len(one) + 1 for one in wanted.values())
        assert members.joined() == b",".join(wanted[name] for name in sorted(wanted))


def test_a_partition_that_is_listed_anew_keeps_nothing_of_before() -> None:
    listed = TopicListings()
    listed.show(9, Listing((4, 2, 3, 1), adding=(4,), removing=(1,)))
    listed.show(10, Listing((1, 2, 3)))
    assert (listed.partitions.joined(), listed.adding.joined(), listed.removing.joined()) == (
        b'"10":[1,2,3],"9":[4,2,3,1]',
        b'"9":[4]',
        b'"9":[1]',
    )
    assert listed.size == len(b'"10":[1,2,3],"9":[4,2,3,1],') + 4 * len(b'"9":[4],')
    listed.show(9, Listing((4, 2, 3)))
    assert (listed.partitions.joined(), listed.adding.joined(), listed.removing.joined()) == (
        b'"10":[1,2,3],"9":[4,2,3]',
        b"",
        b"",
    )
    assert not listed.show(9, Listing((4, 2, 3)))
    listed.show(10, None)
    listed.show(9, None)
    assert (listed.size, listed.by_partition) == (0, {})


@pytest.mark.parametrize("kind", [ReassignmentDocument, Blocked, Deferred])
def test_the_fields_of_a_reassignments_document_are_in_alphabetical_order(kind: type[msgspec.Struct]) -> None:
    assert list(kind.__struct_fields__) == sorted(kind.__struct_fields__), "its encoder does not sort"


def test_a_document_keeps_its_mark_while_its_bytes_stay_the_same() -> None:
    mark = mark_of(b"plan", Place(7, 0))
    assert mark_of(b"plan", Place(8, 0), mark) == mark
    other = mark_of(b"another plan", Place(8, 0), mark)
    assert other != mark
    assert mark_of(b"plan", Place(8, 0)) != mark, "a document that is created again gets a new mark"
    assert is_marked(mark, b"plan")
    assert not is_marked(other, b"plan")
