"""What is imported while Java starts."""

import inspect
import sys
from pathlib import Path

import pytest
from pyspark.sql import types

from drover.spark.session import _NEEDED_BY_CALLS
from drover.spark.warming import imported_meanwhile


def test_modules_are_there_at_the_end_and_one_that_is_not_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_by_a_test.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    with imported_meanwhile("there_is_no_module_of_this_name", "imported_by_a_test"):
        pass
    assert sys.modules.pop("imported_by_a_test", None) is not None


def test_it_is_what_the_bridge_to_java_imports_at_a_call() -> None:
    assert f"from {_NEEDED_BY_CALLS}" in inspect.getsource(types.NumpyArrayConverter.can_convert)
