"""Spark's own settings may be secrets: they are no arguments of a process."""

import os
import stat
from pathlib import Path

from spark.session import _handed_over, _property


def test_they_are_handed_over_in_a_file_of_this_users_alone(tmp_path: Path) -> None:
    settings = {"spark.hadoop.fs.s3a.secret.key": "hush = \\ größe"}
    with _handed_over(tmp_path, settings):
        (file,) = tmp_path.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert str(file) in os.environ["PYSPARK_SUBMIT_ARGS"]
        assert "hush" not in os.environ["PYSPARK_SUBMIT_ARGS"]
        assert "hush" in file.read_text()
    assert list(tmp_path.iterdir()) == []
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ


def test_every_character_survives_javas_form() -> None:
    for text in ("a=b:c d#e!\\\n", "größe", "\U0001f469"):
        escaped = _property(text)
        assert escaped.isascii()
        assert escaped.encode().decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16") == text
