"""The wire contract: codec, golden bytes, hostile input, and the list of every message."""
