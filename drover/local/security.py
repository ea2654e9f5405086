"""The security of a local cluster: certificates, passwords, and the options of its clients.

Secrets are in files that only their owner can read, never on a command line; the storage tool, too, reads a file.
"""

import os
import secrets
import ssl
from pathlib import Path
from typing import Any

from drover.local import settings
from drover.local.layout import CONTROLLER, USERS, ClusterSpec, Layout

PASSWORD_BYTES = 24


def write_secrets(layout: Layout, spec: ClusterSpec) -> None:
    """Create keys, certificates and passwords; those of a kept cluster stay as they are."""
    # The directory of the nodes' data must be private, too: the controller's log holds the users' keys.
    layout.nodes_directory.chmod(0o700)
    if not layout.authority_file.exists():
        # Only a secure cluster needs this import, which takes as long as the rest of an `up`.
        from drover.local.certificates import make_certificates  # noqa: PLC0415 - see above

        made = make_certificates([settings.common_name(node) for node in spec.kafka_nodes])
        for node in spec.kafka_nodes:
            write_private(layout.keystore_file(node), made.keystores[settings.common_name(node)])
        layout.authority_file.write_text(made.authority, encoding="utf-8")
    for user in USERS:
        if not layout.password_file(user).exists():
            write_private(layout.password_file(user), secrets.token_urlsafe(PASSWORD_BYTES) + "\n")


def write_format_arguments(layout: Layout, spec: ClusterSpec) -> Path:
    """Write the storage tool's arguments, including passwords; the caller deletes the file when the tool has ended."""
    passwords = {user: password(layout, user) for user in USERS} if spec.secure else {}
    text = settings.format_arguments(spec, layout.settings_file(CONTROLLER), passwords)
    layout.format_arguments_file.parent.mkdir(parents=True, exist_ok=True)
    write_private(layout.format_arguments_file, text)
    return layout.format_arguments_file


def password(layout: Layout, user: str) -> str:
    """Return a user's password."""
    return layout.password_file(user).read_text(encoding="utf-8").strip()


def client_options(layout: Layout, user: str) -> dict[str, Any]:
    """Return the keyword arguments of a client of this user, for aiokafka and kafka-python."""
    return {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": settings.MECHANISM,
        "sasl_plain_username": user,
        "sasl_plain_password": password(layout, user),
        "ssl_context": ssl.create_default_context(cafile=str(layout.authority_file)),
    }


def node_context(layout: Layout, node: str) -> ssl.SSLContext:
    """Return the TLS context with which one node connects to another."""
    context = ssl.create_default_context(cafile=str(layout.authority_file))
    context.load_cert_chain(layout.keystore_file(node))
    return context


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can ever read."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
