"""The bytes of a transaction are those that kazoo would have sent, and its answers are read as kazoo reads them."""

import struct

from hypothesis import given
from hypothesis import strategies as st
from kazoo.exceptions import BadVersionError, RolledBackError, RuntimeInconsistency
from kazoo.protocol import serialization
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, make_digest_acl

from drover.projections.multi import Multi, encode, encode_acl
from drover.projections.store import Create, Delete, Operation, Set

PATHS = st.text(min_size=1, max_size=20).map(lambda name: f"/{name}")
VERSIONS = st.integers(-1, 2**31 - 1)
OPERATIONS = st.one_of(
    st.builds(Create, PATHS, st.binary(max_size=40)),
    st.builds(Set, PATHS, st.binary(max_size=40), VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
)
ACLS = st.sampled_from(
    [OPEN_ACL_UNSAFE, [*CREATOR_ALL_ACL, make_digest_acl("readers", "secret", read=True)], CREATOR_ALL_ACL]
)


@given(st.lists(OPERATIONS, max_size=8), ACLS, st.sampled_from(["", "/above"]))
def test_the_bytes_are_those_of_kazoo(operations: list[Operation], acl: list[object], chroot: str) -> None:
    requests: list[object] = []
    for operation in operations:
        path = chroot + operation.path
        match operation:
            case Create():
                requests.append(serialization.Create(path, operation.data, acl, 0))
            case Set():
                requests.append(serialization.SetData(path, operation.data, operation.version))
            case Delete():
                requests.append(serialization.Delete(path, operation.version))
    wanted = bytes(serialization.Transaction(requests).serialize())
    taken: list[bool] = []
    made = Multi(encode(chroot, operations, encode_acl(acl)), lambda: taken.append(True))
    assert not taken
    assert made.serialize() == wanted
    assert taken


def test_an_answer_that_all_was_done_is_empty_and_any_other_names_each_failure() -> None:
    made = Multi(b"", lambda: None)
    end = struct.pack("!i?i", -1, True, -1)
    path = b"/a"
    done = struct.pack("!i?ii", 1, False, 0, len(path)) + path + end
    assert made.deserialize(b"...." + done, 4) == []
    failures = b"".join(struct.pack("!i?ii", -1, False, code, code) for code in (-2, -103))
    first, second = made.deserialize(failures + end, 0)
    assert isinstance(first, RuntimeInconsistency)
    assert isinstance(second, BadVersionError)
    (rolled_back,) = made.deserialize(struct.pack("!i?ii", -1, False, 0, 0) + end, 0)
    assert isinstance(rolled_back, RolledBackError)
