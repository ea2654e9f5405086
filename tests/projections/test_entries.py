"""The pieces of documents: joined in the right order, and their bytes counted, whatever comes and goes."""

from hypothesis import given
from hypothesis import strategies as st

from projections.entries import Members
from projections.listings import Listing, TopicListings

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
    listed.put(9, Listing((4, 2, 3, 1), adding=(4,), removing=(1,)))
    listed.put(10, Listing((1, 2, 3)))
    assert (listed.partitions.joined(), listed.adding.joined(), listed.removing.joined()) == (
        b'"10":[1,2,3],"9":[4,2,3,1]',
        b'"9":[4]',
        b'"9":[1]',
    )
    assert listed.size == len(b'"10":[1,2,3],"9":[4,2,3,1],') + 4 * len(b'"9":[4],')
    listed.put(9, Listing((4, 2, 3)))
    assert (listed.partitions.joined(), listed.adding.joined(), listed.removing.joined()) == (
        b'"10":[1,2,3],"9":[4,2,3]',
        b"",
        b"",
    )
    listed.drop(10)
    listed.drop(9)
    assert (listed.size, listed.by_partition) == (0, {})
