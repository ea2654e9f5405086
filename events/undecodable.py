"""The exceptions that decoding malformed bytes with msgspec can raise."""

import msgspec

# `ValidationError` is a `DecodeError`. Text that is not UTF-8 and values that are nested too deeply raise exceptions of
# Python's own.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
