"""The files of the page, read once: each with its type, its hash and its compressed form."""

import gzip
import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file; `etag` is a hash of its content, so that a browser loads it again only if it has changed."""

    content_type: str
    etag: str
    content: bytes
    compressed: bytes


def make_asset(content_type: str, content: bytes) -> Asset:
    """Return an asset with its hash and compressed form."""
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return Asset(content_type, etag, content, gzip.compress(content, mtime=0))


def read_assets() -> dict[str, Asset]:
    """Return every file of a known type below `static`, by its path there."""
    return dict(_read(resources.files("drover.web").joinpath("static"), ""))


def _read(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    assets: list[tuple[str, Asset]] = []
    for entry in folder.iterdir():
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            assets += _read(entry, f"{path}/")
        elif (kind := TYPES.get(f".{entry.name.rpartition('.')[2]}")) is not None:
            assets.append((path, make_asset(kind, entry.read_bytes())))
    return assets
