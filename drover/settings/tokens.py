"""Where the bearer tokens of SASL OAUTHBEARER come from: an OAuth endpoint, a file, a command, or AWS.

A token that takes time to get is kept for four fifths of its life. Every way to get one ends within seconds, because a
connection waits for it.
"""

import base64
import binascii
import http.client
import importlib
import json
import re
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drover.extras import Extra, require
from drover.logins import Secret, TokenError, TokenRefusedError, TokenSource

TIMEOUT_S = 8.0
MOST_BYTES = 64 * 1024
# Of the life of a token; the next one is asked for while this one is still taken.
USED_SHARE = 0.8
# Of a token that does not say how long it is valid.
UNKNOWN_LIFE_S = 60.0
# RFC 6750. Whatever else a broker were sent would end the message that holds the token.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
# An endpoint that answers so will not answer otherwise until somebody corrects a setting.
_REFUSALS = frozenset({400, 401, 403, 404, 405})
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Issued:
    """A token, and for how long it is valid."""

    text: str
    valid_s: float


class KeptTokens:
    """The tokens that `issue` gets, each used for four fifths of its life, and until its end if there is no other."""

    def __init__(self, issue: Callable[[], Issued]) -> None:
        self._issue = issue
        self._lock = threading.Lock()
        self._text = ""
        self._renew_at = self._ends_at = 0.0

    def token(self) -> str:
        """Return a token; one thread gets a new one, and the others wait for it. Raises `TokenError`."""
        with self._lock:
            began_at = time.monotonic()
            if began_at < self._renew_at:
                return self._text
            try:
                issued = self._issue()
            except TokenError:
                if began_at < self._ends_at:
                    return self._text
                raise
            self._text = checked(issued.text)
            self._renew_at = began_at + issued.valid_s * USED_SHARE
            self._ends_at = began_at + issued.valid_s
            return self._text


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file that another program renews; it is read for each connection. `setting` names it in messages."""

    setting: str
    file: str

    def token(self) -> str:
        """Return what the file holds. Raises `TokenError`."""
        try:
            with Path(self.file).open("rb") as stream:
                content = stream.read(MOST_BYTES)
        except OSError as error:
            raise TokenError(f"{self.setting}: the file {self.file} cannot be read: {error.strerror}") from error
        text = content.decode("ascii", errors="replace").strip()
        if not text:
            raise TokenError(f"{self.setting}: the file {self.file} is empty")
        return checked(text)


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """OAuth's grant of that name (RFC 6749, 4.4): an id and a secret for a token.

    `secret` is called for each request. The id and the secret go into the header as they are, as Kafka's own client
    sends them. `cafile` holds the authorities of the endpoint, None for those of this machine.
    """

    url: str
    client_id: str
    secret: Callable[[], Secret]
    scope: str | None = None
    cafile: str | None = None

    def issue(self) -> Issued:
        """Ask the endpoint. Raises `TokenError`."""
        form = {"grant_type": "client_credentials"} | ({} if self.scope is None else {"scope": self.scope})
        credentials = base64.b64encode(f"{self.client_id}:{self.secret()}".encode()).decode()
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked when the settings were made
            self.url,
            data=urllib.parse.urlencode(form).encode(),
            headers={"Authorization": f"Basic {credentials}", "Accept": "application/json"},
        )
        try:
            with self._opener().open(request, timeout=TIMEOUT_S) as response:
                content = response.read(MOST_BYTES)
        except urllib.error.HTTPError as error:
            fault = TokenRefusedError if error.code in _REFUSALS else TokenError
            with error:
                answer = f"{error.code}{_said(error.read(MOST_BYTES))}"
            raise fault(f"the token endpoint {self.url} answers {answer}") from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            raise TokenError(f"the token endpoint {self.url} does not answer: {reason}") from error
        document = _document(content)
        text, valid_s = document.get("access_token"), document.get("expires_in")
        if not isinstance(text, str):
            raise TokenError(f"the token endpoint {self.url} answers without an access_token")
        return Issued(text, valid_s if isinstance(valid_s, int | float) and valid_s > 0 else life_s(text))

    def _opener(self) -> urllib.request.OpenerDirector:
        import ssl  # noqa: PLC0415 - costs start-up time and few need it

        try:
            context = ssl.create_default_context(cafile=self.cafile)
        except OSError as error:
            raise TokenError(f"sasl_oauth_cafile: the file {self.cafile} cannot be used: {error}") from error
        # The secret goes to this endpoint only.
        return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirects())


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


@dataclass(frozen=True, slots=True)
class TokenCommand:
    """A command that prints a token, without a shell; its environment is this process's."""

    command: tuple[str, ...]

    def issue(self) -> Issued:
        """Run the command. Raises `TokenError`."""
        name = self.command[0]
        try:
            done = subprocess.run(  # noqa: S603 - the operator's own command
                self.command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise TokenError(f"sasl_oauth_token_command: {name} has not ended within {TIMEOUT_S:g} s") from error
        except OSError as error:
            raise TokenError(f"sasl_oauth_token_command: {name} cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            said = f": {lines[-1][:_SHOWN_CHARACTERS]}" if lines else ""
            raise TokenError(f"sasl_oauth_token_command: {name} has failed with exit code {done.returncode}{said}")
        text = done.stdout.decode("ascii", errors="replace").strip()
        return Issued(text, life_s(text))


@dataclass(frozen=True, slots=True)
class AwsTokens:
    """Amazon MSK's tokens: a request that AWS's own library signs with the credentials of this machine or role."""

    region: str
    signer: Any = field(repr=False)

    def issue(self) -> Issued:
        """Sign a token. Raises `TokenError` if there are no credentials."""
        core = importlib.import_module("botocore.exceptions")
        try:
            text, ends_ms = self.signer.generate_auth_token(self.region)
        except core.BotoCoreError as error:
            raise TokenError(f"AWS gives no credentials for a token: {error}") from error
        except (AttributeError, ValueError) as error:  # what the library raises where there are none
            raise TokenError("AWS gives no credentials for a token: it found none on this machine") from error
        return Issued(text, ends_ms / 1000 - time.time())


def aws_tokens(section: str, region: str) -> TokenSource:
    """Return the tokens of Amazon MSK. Raises `ConfigurationError` if AWS's library is not installed."""
    require(Extra.MSK, f"{section}.sasl_mechanism = AWS_MSK_IAM")
    signer = importlib.import_module("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
    return KeptTokens(AwsTokens(region, signer).issue)


def checked(text: str) -> str:
    """Return a bearer token. Raises `TokenError` for anything else."""
    if not _TOKEN.fullmatch(text):
        raise TokenError("what was given as a token is none: it has other characters than a bearer token (RFC 6750)")
    return text


def life_s(token: str) -> float:
    """Return for how long a token is valid: until its `exp` if it is a JWT, else a minute."""
    parts = token.split(".")
    if len(parts) < 2:
        return UNKNOWN_LIFE_S
    try:
        claims = _document(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return UNKNOWN_LIFE_S
    ends_s = claims.get("exp")
    return max(0.0, ends_s - time.time()) if isinstance(ends_s, int | float) else UNKNOWN_LIFE_S


def _document(content: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _said(content: bytes) -> str:
    """Return what an OAuth error says (RFC 6749, 5.2)."""
    document = _document(content)
    words = [str(document[name]) for name in ("error", "error_description") if document.get(name)]
    return f": {', '.join(words)[:_SHOWN_CHARACTERS]}" if words else ""
