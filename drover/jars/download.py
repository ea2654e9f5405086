"""Fetch one jar over HTTP: resumed where it was cut, tried again on faults that pass, verified before it is named.

Owns the default mirror. Does not know which jars are wanted or where progress is shown.
"""

import base64
import http.client
import os
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

from drover.errors import ConfigurationError
from drover.jars.cache import sha256_of
from drover.jars.lock import Jar

DEFAULT_MIRROR = "https://repo1.maven.org/maven2"
MIRROR_VARIABLE = "DROVER_MAVEN_MIRROR"
HTTP_VARIABLE = "DROVER_MAVEN_MIRROR_ALLOWS_HTTP"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
ATTEMPTS = 4
FIRST_PAUSE_S = 0.5
SOCKET_TIMEOUT_S = 20
CHUNK_BYTES = 1 << 16

Advance = Callable[[int], None]


class DownloadCancelledError(Exception):
    """Another jar failed or the user gave up: this one stops between two chunks."""


def mirror_base(mirror: str | None = None) -> str:
    """Return the Maven repository to fetch from: the argument, else `DROVER_MAVEN_MIRROR`, else Maven Central."""
    base = (mirror or os.environ.get(MIRROR_VARIABLE) or DEFAULT_MIRROR).rstrip("/")
    address = urllib.parse.urlsplit(base)
    if address.scheme not in {"https", "http"}:
        raise ConfigurationError(f"{MIRROR_VARIABLE} must be an http or https address, not {shown(base)!r}")
    if address.scheme == "http" and address.hostname not in _LOOPBACK and os.environ.get(HTTP_VARIABLE) != "1":
        raise ConfigurationError(
            f"{shown(base)} is not encrypted, so anybody on the way sees what is fetched and can stop it: use https, "
            f"or set {HTTP_VARIABLE}=1 if that is meant (what is fetched is compared with its locked hash all the same)"
        )
    return base


def shown(address: str) -> str:
    """Return an address without the user and password that a mirror may ask for; messages show this one."""
    parts = urllib.parse.urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def request_for(address: str) -> urllib.request.Request:
    """Make the request for an address; a user and password in it go to this host only, and not where it redirects."""
    parts = urllib.parse.urlsplit(address)
    request = urllib.request.Request(shown(address), headers={"User-Agent": "drover"})  # noqa: S310 - mirror_base allows http(s) only
    if parts.username is not None:
        pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
    return request


def download(jar: Jar, directory: Path, base: str, advance: Advance, cancelled: threading.Event) -> None:
    """Bring one jar to its place below `directory`, by an atomic rename after its hash was found right.

    `advance` is told the bytes gained (negative when a start from zero throws some away). A wrong hash, a jar that the
    mirror does not have and a mirror that cannot be reached are ConfigurationErrors.
    """
    target = directory / jar.path
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".jar.part")
    address = f"{base}/{jar.path}"
    resumed = _offset(part) > 0
    advance(_offset(part))
    _fetch_with_retries(address, part, jar, advance, cancelled)
    found = sha256_of(part)
    if found != jar.sha256 and resumed:
        # What an earlier run left may be from elsewhere: only a download in one piece condemns the mirror.
        advance(-_offset(part))
        part.unlink()
        _fetch_with_retries(address, part, jar, advance, cancelled)
        found = sha256_of(part)
    if found != jar.sha256:
        part.unlink()
        raise ConfigurationError(
            f"{target.name} from {shown(address)} has the wrong content and was removed: expected SHA-256 "
            f"{jar.sha256}, found {found}. The mirror or something before it changed the file; choose another with "
            f"{MIRROR_VARIABLE}."
        )
    part.replace(target)


def _fetch_with_retries(address: str, part: Path, jar: Jar, advance: Advance, cancelled: threading.Event) -> None:
    """Fill the part file to the locked size, pausing longer before each further attempt."""
    pause_s = FIRST_PAUSE_S
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _fetch_rest(address, part, jar, advance, cancelled)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code < 500 and error.code not in {408, 416, 429}:
                raise ConfigurationError(
                    f"{shown(address)} answered {error.code} {error.reason}: that mirror does not have the file; "
                    f"choose another with {MIRROR_VARIABLE}"
                ) from error
            fault: Exception = error
        except (OSError, http.client.HTTPException) as error:
            fault = error
        else:
            return
        if attempt < ATTEMPTS and cancelled.wait(pause_s):
            raise DownloadCancelledError
        pause_s *= 2
    raise ConfigurationError(
        f"{shown(address)} could not be fetched ({fault}), {ATTEMPTS} attempts: this machine seems to be offline and "
        f"{part.stem} is not in the cache. Connect it once, or set {MIRROR_VARIABLE} to a Maven mirror it reaches."
    ) from fault


def _fetch_rest(address: str, part: Path, jar: Jar, advance: Advance, cancelled: threading.Event) -> None:
    """Fetch what the part file lacks; a server that ignores the range makes it start from zero."""
    offset = _offset(part)
    if offset > jar.size_bytes:
        advance(-offset)
        part.unlink()
        offset = 0
    if offset == jar.size_bytes:
        return
    request = request_for(address)
    if offset:
        request.add_header("Range", f"bytes={offset}-")
    with urllib.request.urlopen(request, timeout=SOCKET_TIMEOUT_S) as response:  # noqa: S310 - as above
        continues = response.status == http.HTTPStatus.PARTIAL_CONTENT
        if offset and not continues:
            advance(-offset)
        with part.open("ab" if continues else "wb") as stream:
            while chunk := response.read(CHUNK_BYTES):
                if cancelled.is_set():
                    raise DownloadCancelledError
                if stream.tell() + len(chunk) > jar.size_bytes:
                    raise ConfigurationError(
                        f"{shown(address)} is larger than the {jar.size_bytes:,} bytes that are locked: "
                        f"the mirror or something before it changed the file; choose another with {MIRROR_VARIABLE}"
                    )
                stream.write(chunk)
                advance(len(chunk))
    if _offset(part) < jar.size_bytes:
        raise http.client.IncompleteRead(b"", jar.size_bytes - _offset(part))


def _offset(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
