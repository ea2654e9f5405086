"""The exceptions that decoding malformed bytes with msgspec can raise."""

import msgspec

# `ValidationError` is a `DecodeError`. Text that is not UTF-8 and values that are nested too deeply raise faults of
# Python's: to catch the first alone would let any flipped bit end whoever reads.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
