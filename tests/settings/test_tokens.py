"""Bearer tokens: from where they come, for how long they are kept, and what is said where there is none."""

import base64
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drover.errors import ConfigurationError
from drover.logins import TokenError, TokenRefusedError, TokenSource
from drover.settings import tokens
from drover.settings.java_options import JavaNeeds, java_client_options, java_needs
from drover.settings.security import Security
from tests.settings.endpoint import Endpoint, encoded, token_endpoint

SECRET = "hunter2"  # noqa: S105 - nobody's
SECTION = "log.security"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with token_endpoint() as running:
        yield running


def source(**settings: object) -> TokenSource:
    security = Security("SASL_SSL", "OAUTHBEARER", **settings)  # type: ignore[arg-type]  # named by each test
    given: TokenSource = security.client_options(SECTION)["sasl_oauth_token_provider"]
    return given


def credentials(endpoint: Endpoint, **more: object) -> TokenSource:
    client = {"sasl_oauth_client_id": "drover", "sasl_oauth_client_secret": SECRET}
    return source(sasl_oauth_token_endpoint=f"{endpoint.url}/token", **{**client, **more})


def test_a_client_shows_its_id_and_secret_and_names_its_scope(endpoint: Endpoint) -> None:
    assert credentials(endpoint, sasl_oauth_scope="kafka").token() == endpoint.issued[0]
    (asked,) = endpoint.asked
    assert asked["header"] == f"Basic {base64.b64encode(b'drover:hunter2').decode()}"
    assert asked["form"] == {"grant_type": "client_credentials", "scope": "kafka"}


def test_a_token_is_kept_for_four_fifths_of_its_life(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = time.monotonic()
    monkeypatch.setattr("drover.settings.tokens.time.monotonic", lambda: now_s)
    kept = credentials(endpoint)
    first = kept.token()
    now_s += 0.79 * endpoint.life_s
    assert kept.token() == first
    now_s += 0.02 * endpoint.life_s
    assert kept.token() == endpoint.issued[1] != first


def test_a_token_is_used_until_its_end_where_the_endpoint_is_gone(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = time.monotonic()
    monkeypatch.setattr("drover.settings.tokens.time.monotonic", lambda: now_s)
    kept = credentials(endpoint)
    first = kept.token()
    endpoint.answer = (503, b"", {})
    now_s += 0.9 * endpoint.life_s
    assert kept.token() == first
    now_s += 0.11 * endpoint.life_s
    with pytest.raises(TokenError, match="answers 503"):
        kept.token()


def test_a_secret_in_a_file_is_read_for_each_request(endpoint: Endpoint, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("old\n")
    kept = credentials(endpoint, sasl_oauth_client_secret=None, sasl_oauth_client_secret_file=str(file))
    with pytest.raises(TokenRefusedError):
        kept.token()
    file.write_text(f"{SECRET}\n")
    assert kept.token() == endpoint.issued[0]


@pytest.mark.parametrize(
    ("answer", "fault", "said"),
    [
        ((401, b'{"error": "invalid_client", "error_description": "gone"}', {}), TokenRefusedError,
         "invalid_client, gone"),
        ((500, b"<html>", {}), TokenError, "answers 500$"),
        ((302, b"", {"Location": "http://127.0.0.1:1/"}), TokenError, "answers 302$"),
        ((200, b"<html>", {}), TokenError, "without an access_token"),
        ((200, b'{"access_token": "a\\u0001b"}', {}), TokenError, "other characters than a bearer token"),
    ],
)  # fmt: skip
def test_an_endpoint_that_gives_none_is_named_with_what_it_says(
    answer: tuple[int, bytes, dict[str, str]], fault: type[TokenError], said: str, endpoint: Endpoint
) -> None:
    endpoint.answer = answer
    with pytest.raises(fault, match=said) as raised:
        credentials(endpoint).token()
    assert SECRET not in str(raised.value)


def test_an_endpoint_that_is_not_there_may_be_there_later() -> None:
    client = {"sasl_oauth_client_id": "drover", "sasl_oauth_client_secret": SECRET}
    with pytest.raises(TokenError, match=r"http://127.0.0.1:1/token does not answer: .*refused") as raised:
        source(sasl_oauth_token_endpoint="http://127.0.0.1:1/token", **client).token()  # noqa: S106 - no password
    assert not isinstance(raised.value, TokenRefusedError)


def test_a_token_file_is_read_for_each_connection(tmp_path: Path) -> None:
    file = tmp_path / "token"
    read = source(sasl_oauth_token_file=str(file))
    with pytest.raises(
        TokenError, match=r"log\.security\.sasl_oauth_token_file: the file .*token cannot be read: No such"
    ):
        read.token()
    for text in ("first", "second.of.three"):
        file.write_text(f"{text}\n")
        assert read.token() == text
    file.write_text("\n")
    with pytest.raises(TokenError, match="token is empty"):
        read.token()


def test_a_command_prints_a_token_which_is_kept_for_its_life(tmp_path: Path) -> None:
    count = tmp_path / "count"
    claims = encoded(json.dumps({"exp": time.time() + 3600}).encode())
    program = f"import pathlib; pathlib.Path({str(count)!r}).open('a').write('x'); print('e30.{claims}.sig')"
    printed = source(sasl_oauth_token_command=(sys.executable, "-c", program))
    assert printed.token() == printed.token() == f"e30.{claims}.sig"
    assert count.read_text() == "x"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit('no ticket')", "has failed with exit code 1: no ticket"),
        ("print()", "other characters than a bearer token"),
    ],
)
def test_a_command_that_gives_none_is_named_with_what_it_says(program: str, said: str) -> None:
    with pytest.raises(TokenError, match=said):
        source(sasl_oauth_token_command=(sys.executable, "-c", program)).token()


def test_a_command_that_is_not_there_or_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TokenError, match="/no/such cannot be run: No such file"):
        source(sasl_oauth_token_command=("/no/such",)).token()
    monkeypatch.setattr(tokens, "TIMEOUT_S", 0.1)
    with pytest.raises(TokenError, match=r"has not ended within 0\.1 s"):
        source(sasl_oauth_token_command=(sys.executable, "-c", "import time; time.sleep(60)")).token()


@pytest.mark.parametrize("token", ["opaque", "a.b.c", "a.e30.c", "a.W10.c"])
def test_a_token_that_does_not_say_its_life_is_kept_for_a_minute(token: str) -> None:
    assert tokens.life_s(token) == tokens.UNKNOWN_LIFE_S


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "OAUTHBEARER needs exactly one of"),
        ({"sasl_oauth_token_file": "a", "sasl_oauth_token_command": ("b",)}, "OAUTHBEARER needs exactly one of"),
        ({"sasl_oauth_token_endpoint": "https://a"}, "needs sasl_oauth_client_id and sasl_oauth_client_secret"),
        ({"sasl_oauth_token_file": "a", "sasl_oauth_scope": "b"}, "sasl_oauth_scope has no effect without"),
        ({"sasl_oauth_token_file": "a", "sasl_plain_username": "b"}, "sasl_plain_username and its password have no"),
        ({"sasl_oauth_token_file": "a", "sasl_aws_region": "b"}, "sasl_aws_region has no effect with sasl_mechanism"),
        ({"sasl_oauth_token_endpoint": "http://idp.example.com", "sasl_oauth_client_id": "a",
          "sasl_oauth_client_secret": "b"}, "must be an https URL"),
        ({"sasl_oauth_token_endpoint": "file:///x", "sasl_oauth_client_id": "a", "sasl_oauth_client_secret": "b"},
         "must be an https URL"),
        ({"sasl_oauth_token_endpoint": "https://a", "sasl_oauth_client_id": "a", "sasl_oauth_client_secret": "b",
          "sasl_oauth_client_secret_file": "c"}, "are both set"),
    ],
)  # fmt: skip
def test_settings_that_give_no_token_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Security("SASL_SSL", "OAUTHBEARER", **settings)  # type: ignore[arg-type]  # that is the point


def test_the_java_client_gets_tokens_from_the_same_places() -> None:
    of_endpoint = Security(
        "SASL_SSL",
        "OAUTHBEARER",
        sasl_oauth_token_endpoint="https://idp/token",  # noqa: S106 - no password
        sasl_oauth_client_id="drover",
        sasl_oauth_client_secret='a"b',  # noqa: S106 - nobody's
        sasl_oauth_scope="kafka",
    )
    options = java_client_options(of_endpoint, SECTION)
    assert options["sasl.oauthbearer.token.endpoint.url"] == "https://idp/token"
    assert options["sasl.jaas.config"].endswith('required clientId="drover" clientSecret="a\\"b" scope="kafka";')
    of_file = Security("SASL_SSL", "OAUTHBEARER", sasl_oauth_token_file="/run/a token")  # noqa: S106 - no password
    assert java_client_options(of_file, SECTION)["sasl.oauthbearer.token.endpoint.url"] == "file:///run/a%20token"
    of_command = Security("SASL_SSL", "OAUTHBEARER", sasl_oauth_token_command=("get",))
    with pytest.raises(ConfigurationError, match="runs no command"):
        java_client_options(of_command, SECTION)


def test_java_logs_in_at_msk_with_amazons_module(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Security("SASL_SSL", "AWS_MSK_IAM", sasl_aws_region="eu-west-1")
    options = java_client_options(aws, SECTION)
    assert options["sasl.jaas.config"] == "software.amazon.msk.auth.iam.IAMLoginModule required;"
    assert options["sasl.client.callback.handler.class"] == "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
    assert java_needs(aws) == JavaNeeds({"aws.region": "eu-west-1"}, jar_sets=("msk",))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="sasl_aws_region is not set, and neither is AWS_REGION"):
        Security("SASL_SSL", "AWS_MSK_IAM")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert Security("SASL_SSL", "AWS_MSK_IAM").aws_region == "eu-west-1"


def test_java_takes_kerberos_tickets_from_where_the_environment_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kerberos = Security("SASL_SSL", "GSSAPI", sasl_kerberos_service_name="brokers")
    table = tmp_path / "drover.keytab"
    monkeypatch.setattr("drover.settings.java_options.kerberos_principal", lambda _: "drover@EXAMPLE.COM")
    monkeypatch.delenv("KRB5_CONFIG", raising=False)
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", f"FILE:{table}")
    options = java_client_options(kerberos, SECTION)
    assert options["sasl.kerberos.service.name"] == "brokers"
    assert options["sasl.jaas.config"] == (
        'com.sun.security.auth.module.Krb5LoginModule required useTicketCache="true" doNotPrompt="true";'
    )
    assert java_needs(kerberos) == JavaNeeds(modules=("jdk.security.jgss",))
    table.touch()
    monkeypatch.setenv("KRB5_CONFIG", "/etc/realm.conf:/etc/krb5.conf")
    assert java_client_options(kerberos, SECTION)["sasl.jaas.config"] == (
        'com.sun.security.auth.module.Krb5LoginModule required useKeyTab="true" storeKey="true" doNotPrompt="true" '
        f'keyTab="{table}" principal="drover@EXAMPLE.COM";'
    )
    assert java_needs(kerberos).system_properties == {"java.security.krb5.conf": "/etc/realm.conf"}


def test_other_logins_need_nothing_of_java() -> None:
    assert java_needs(Security()) == JavaNeeds()


@pytest.mark.parametrize(("mechanism", "extra"), [("AWS_MSK_IAM", "msk"), ("GSSAPI", "gssapi")])
def test_a_way_to_log_in_whose_library_is_not_installed_names_the_extra(
    mechanism: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drover.extras.is_installed", lambda _: False)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    security = Security("SASL_SSL", mechanism)  # type: ignore[arg-type]  # one of its words
    with pytest.raises(ConfigurationError, match=rf"log\.security\.sasl_mechanism = {mechanism} needs .*\[{extra}\]"):
        security.client_options(SECTION)
