"""The properties of Kafka's Java clients, as Java reads them, become the settings of a cluster."""

from pathlib import Path
from typing import Any

import pytest

from drover.errors import ConfigurationError
from drover.settings.java_options import java_client_options
from drover.settings.properties import read_client_properties
from drover.settings.security import Security

SCRAM = r"""
# of the platform team
bootstrap.servers = kafka-1:9093,kafka-2:9093
security.protocol=SASL_SSL
sasl.mechanism: SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
    username="drover" \
    password="a \\"quoted\\" \\\\ w\u00f6rd;=#";
ssl.truststore.location=/etc/kafka/trust.p12
ssl.truststore.type=PKCS12
ssl.truststore.password=changeit
ssl.endpoint.identification.algorithm=https
"""


def read(directory: Path, text: str) -> dict[str, Any]:
    file = directory / "client.properties"
    file.write_text(text)
    return read_client_properties(file)


def refusal(directory: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        read(directory, text)
    return str(refused.value)


def test_escapes_comments_and_continuation_lines_are_java_s(tmp_path: Path) -> None:
    assert read(tmp_path, SCRAM) == {
        "bootstrap": "kafka-1:9093,kafka-2:9093",
        "security": {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "drover",
            "sasl_plain_password": 'a "quoted" \\ wörd;=#',
            "ssl_cafile": "/etc/kafka/trust.p12",
            "ssl_ca_password": "changeit",
        },
    }


def test_what_java_is_told_is_read_again_as_the_same(tmp_path: Path) -> None:
    security = read(tmp_path, SCRAM)["security"]
    del security["ssl_cafile"], security["ssl_ca_password"]
    options = java_client_options(Security(**security), "log.security")
    escaped = {
        name: value.replace("\\", "\\\\").encode("latin-1", "backslashreplace").decode("latin-1")
        for name, value in options.items()
    }
    text = "".join(f"{name}={value}\n" for name, value in escaped.items())
    (tmp_path / "again.properties").write_bytes(text.encode("latin-1"))
    assert read_client_properties(tmp_path / "again.properties") == {"security": security}


@pytest.mark.parametrize(
    ("text", "security"),
    [
        ("", {}),
        ("security.protocol=SSL\nssl.keystore.location=me.p12\nssl.keystore.password=x\nssl.key.password=x\n",
         {"security_protocol": "SSL", "ssl_certfile": "me.p12", "ssl_key_password": "x"}),
        ("security.protocol=ssl\nssl.keystore.type=PEM\nssl.keystore.location=me.pem\nssl.key.password=x\n",
         {"security_protocol": "SSL", "ssl_certfile": "me.pem", "ssl_key_password": "x"}),
        (("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config="
         "org.apache.kafka.common.security.plain.PlainLoginModule required username='me' password=x;"),
         {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_plain_username": "me",
          "sasl_plain_password": "x"}),
        (("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
         "sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.secured."
         "OAuthBearerLoginCallbackHandler\nsasl.oauthbearer.token.endpoint.url=https://idp/token\nsasl.jaas.config="
         'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="a" clientSecret="b" '
         'scope="kafka";'),
         {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "sasl_oauth_client_id": "a",
          "sasl_oauth_token_endpoint": "https://idp/token", "sasl_oauth_client_secret": "b",
          "sasl_oauth_scope": "kafka"}),
        (("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
         "sasl.oauthbearer.token.endpoint.url=file:///run/my%20token\nsasl.jaas.config="
         "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"),
         {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER",
          "sasl_oauth_token_file": "/run/my token"}),
        (("security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM\nsasl.jaas.config=software.amazon.msk.auth.iam."
         "IAMLoginModule required;\nsasl.client.callback.handler.class=software.amazon.msk.auth.iam."
         "IAMClientCallbackHandler"),
         {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM"}),
        (("security.protocol=SASL_SSL\nsasl.kerberos.service.name=kafka\nsasl.jaas.config="
         "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;"),
         {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": "kafka"}),
    ],
)  # fmt: skip
def test_every_way_to_connect_is_known(text: str, security: dict[str, Any], tmp_path: Path) -> None:
    assert read(tmp_path, text) == {"security": security}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("acks=all\nclient.id=x\n", "line 2: client.id is not supported: leave it out"),
        ("security.protocol=TLS\n", "line 1: security.protocol must be one of PLAINTEXT, SSL"),
        ("\n\nssl.keystore.location=me.p12\n", "line 3: ssl.keystore.location is not supported, or has no effect with"),
        ("security.protocol=SSL\nssl.endpoint.identification.algorithm=\n", "line 2: ssl.endpoint.identification"),
        ("security.protocol=SSL\nssl.keystore.type=JKS\nssl.keystore.location=a\n", "must be one of PEM, PKCS12"),
        ("security.protocol=SSL\nssl.keystore.key=-----BEGIN\n", "write the key to a file, and name it"),
        ("security.protocol=SSL\nssl.keystore.password=a\nssl.key.password=b\n", "one password for both"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=me hunter2\n", "is not a login module"),
        ("security.protocol=SASL_SSL\nsasl.jaas.config=a.B required x=hunter2;\n", "login module a.B, which is not"),
        (("security.protocol=SASL_SSL\nsasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required "
         'useTicketCache=true keyTab="/etc/hunter2";\n'), "option keyTab, which is not supported: name the key table"),
        ("security.protocol=SASL_SSL\nsasl.login.callback.handler.class=my.Handler\n", "sasl.login.callback.handler"),
        ("a=\\u12\n", "line 1: "),
    ],
)  # fmt: skip
def test_what_is_wrong_or_not_supported_is_named_with_its_line_and_not_with_its_value(
    text: str, said: str, tmp_path: Path
) -> None:
    words = refusal(tmp_path, text)
    assert said in words
    assert str(tmp_path / "client.properties") in words
    assert "hunter2" not in words


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    words = refusal(tmp_path, "acks=all\nlinger.ms=5\nsecurity.protocol=x\n")
    assert all(f"line {number}: " in words for number in (1, 2, 3))


def test_a_file_that_is_not_there_is_named_with_the_flag(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"gone cannot be read \(No such file.*--command-config"):
        read_client_properties(tmp_path / "gone")


def test_a_file_that_others_may_write_is_refused_since_it_says_where_commands_go(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=prod:9092\n")
    file.chmod(0o664)
    with pytest.raises(ConfigurationError, match=r"client\.properties is not used, because its group may write it"):
        read_client_properties(file)
