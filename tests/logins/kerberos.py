"""A realm on this machine: a KDC from the system's packages, with keys for brokers and a client."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from drover.errors import ConfigurationError
from drover.extras import Extra, is_installed
from drover.jars import find_java

REALM = "DROVER.TEST"
KDC = "krb5kdc"
HOST = "localhost"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
_MASTER = "of this test only"
_PROGRAMS = (KDC, "kdb5_util", "kadmin.local", "kinit")
_PACKAGES = "krb5-kdc krb5-admin-server krb5-user libkrb5-dev gcc default-jre-headless"
REMEDY = f"on Debian: apt install {_PACKAGES}; then remove .venv/.installed, and make install"


def missing() -> list[str]:
    """Name what the stories of Kerberos need and this machine lacks."""
    lacking = [program for program in _PROGRAMS if shutil.which(program, path=_PATH) is None]
    if not is_installed("gssapi"):
        lacking.append(f"the extra {Extra.GSSAPI}")
    try:
        # Brokers and Spark run on the first Java that is found.
        has_kerberos = find_java() == find_java(("jdk.security.jgss",))
    except ConfigurationError:
        has_kerberos = False
    return lacking if has_kerberos else [*lacking, "a Java with jdk.security.jgss"]


@dataclass(frozen=True)
class Realm:
    """The files of the realm; `environment` lets a client use it without a ticket, and `key_table` gives it one."""

    directory: Path

    @property
    def client_file(self) -> Path:
        return self.directory / "krb5.conf"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "KRB5_CONFIG": str(self.client_file),
            "KRB5CCNAME": f"FILE:{self.directory / 'tickets'}",
            "KRB5_CLIENT_KTNAME": str(self.directory / "none.keytab"),
        }

    def key_table(self, name: str) -> Path:
        return self.directory / f"{name.replace('/', '-')}.keytab"

    def add(self, name: str) -> Path:
        """Add a principal with a random key, and return the file with that key."""
        table = self.key_table(name)
        self.run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {name}")
        self.run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {table} {name}")
        return table

    def run(self, *command: str) -> None:
        done = subprocess.run(
            command, env=self.kdc_environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr

    @property
    def kdc_environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": _PATH,
            "KRB5_CONFIG": str(self.client_file),
            "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
        }


@contextmanager
def realm(directory: Path) -> Iterator[Realm]:
    """Run a KDC for the length of a block."""
    made = Realm(directory)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    made.client_file.write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n rdns = false\n"
        " dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
        f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
    )
    (directory / "kdc.conf").write_text(
        f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n"
        f"[realms]\n {REALM} = {{\n  database_name = {directory}/principal\n  key_stash_file = {directory}/stash\n"
        f"  acl_file = {directory}/acl\n }}\n[logging]\n kdc = FILE:{directory}/kdc.log\n"
    )
    made.run("kdb5_util", "create", "-s", "-r", REALM, "-P", _MASTER)
    process = subprocess.Popen([KDC, "-n", "-r", REALM], env=made.kdc_environment)
    try:
        yield made
    finally:
        process.terminate()
        process.wait(timeout=30)
