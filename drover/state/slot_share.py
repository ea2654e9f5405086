"""The share of a broker's slot that a copy takes, by its size in the log."""

# Shares are counted in sixteenths. Even the smallest copy takes one: at most sixteen share a slot.
WHOLE_SLOT, LEAST_SHARE = 16, 1
# The bytes of a partition that one fetch returns to a follower (the default of replica.fetch.max.bytes). A copy of this
# size takes a whole slot, so that smaller copies in the slots of a broker have no more bytes than as many whole ones.
WHOLE_SLOT_BYTES = 1024 * 1024
_SHARES = (1, 2, 4, 8)


def share_of(copy_bytes: int | None) -> int:
    """Return the share of a slot in sixteenths, a power of two; a copy of unknown size takes a whole one."""
    if copy_bytes is not None:
        for share in _SHARES:
            if copy_bytes * WHOLE_SLOT <= share * WHOLE_SLOT_BYTES:
                return share
    return WHOLE_SLOT
