"""The hash of a shard's state: equal states have equal hashes, in any process, for ever.

It covers the recorded fields of each cluster's state that are not at their defaults, so that a field added later
changes no recorded hash. msgspec leaves a field of a struct out if its value *is* the default, the same object: a
struct may have `omit_defaults` only if its defaults exist once (None, False, 0, an empty tuple, a member of an
enumeration), which a test checks. Such a struct has at most 15 fields: beyond that, msgspec writes a wider map header
even if most fields are left out.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from drover.state.cluster import ClusterState
from drover.state.declared import declarations

# The least number of batches from one hash to the next.
HASH_EVERY = 1000

_HASHED = {
    declared.name: (attribute, declared.content)
    for attribute, declared in declarations(ClusterState).items()
    if declared.hashed
}


def state_hash(clusters: Mapping[str, ClusterState]) -> bytes:
    """Hash the clusters of one shard; 16 bytes. Indexes are not part of it."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(clusters):
        digest.update(msgspec.msgpack.encode(_content(clusters[name])))
    return digest.digest()


def is_hash_due(sequence: int, clusters: Mapping[str, ClusterState]) -> bool:
    """Whether the batch of this number carries a hash of the state: every thousandth, and more rarely in a large state.

    A hash takes time for each entry, 60 ms for 100,000 reassignments, and the shard decides no command meanwhile. So
    there are about as many batches between two hashes as the state has entries.
    """
    if sequence % HASH_EVERY:
        return False
    size, between = sum(map(_size, clusters.values())), HASH_EVERY
    while between < size:
        between *= 2
    return sequence % between == 0


def _size(state: ClusterState) -> int:
    values = (getattr(state, attribute) for attribute, _ in _HASHED.values())
    return sum(len(value) for value in values if isinstance(value, dict))


def _content(state: ClusterState) -> dict[str, object]:
    content: dict[str, object] = {"name": state.name}
    for name in sorted(_HASHED):
        attribute, made_of = _HASHED[name]
        value = made_of(getattr(state, attribute))
        if value:
            content[name] = value
    return content
