"""The author of a command when `--by` is not given."""

import os
import socket

import pytest

from drover.cli.invocation import Invocation


def test_a_user_who_has_a_number_and_no_name_is_named_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Drover's own image, where the user is 10001."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert Invocation().author == f"uid-{os.getuid()}@{socket.gethostname()}"
    assert Invocation(by="ann").author == "ann"
