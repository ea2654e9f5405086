"""PURE: the text of files that people and programs wrote, in UTF-8 or, as some shells write it, in UTF-16."""

import json


def decode_text(content: bytes) -> str:
    """Return a file's text, without a byte order mark.

    UTF-16 and UTF-32 are known by their mark, or by the zero bytes of the first two characters, of which one at least
    must be ASCII, as in JSON and TOML. Raises `UnicodeDecodeError` for what is neither that nor UTF-8.
    """
    return content.decode(json.detect_encoding(content))
