"""The jar cache: lock, download, verification, and the search for Java."""
