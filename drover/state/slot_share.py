"""The share of a broker's slot that a copy takes, by its size in the log."""

# Shares are counted in sixteenths. Even the smallest copy takes one: at most sixteen share a slot.
WHOLE_SLOT, LEAST_SHARE = 16, 1
# What a follower gets of a partition with one fetch (replica.fetch.max.bytes, by default). A copy of that much takes a
# whole slot, so all that share the slots of a broker are no more bytes than as many whole copies.
WHOLE_SLOT_BYTES = 1024 * 1024
_SHARES = (1, 2, 4, 8)


def share_of(copy_bytes: int | None) -> int:
    """Return the share of a slot in sixteenths, a power of two; a copy of unknown size takes a whole one."""
    if copy_bytes is not None:
        for share in _SHARES:
            if copy_bytes * WHOLE_SLOT <= share * WHOLE_SLOT_BYTES:
                return share
    return WHOLE_SLOT
