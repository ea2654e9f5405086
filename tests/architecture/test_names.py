"""Our top-level packages have generic names: nobody else's package of that name may shadow them, or be shadowed."""

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, TOP_LEVEL

EACH_PACKAGE = pytest.mark.parametrize("name", TOP_LEVEL)


@EACH_PACKAGE
def test_a_package_is_found_in_this_checkout(name: str) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).resolve() == (ROOT / name / "__init__.py").resolve()


@EACH_PACKAGE
def test_no_installed_distribution_brings_a_package_of_that_name(name: str) -> None:
    owners = importlib.metadata.packages_distributions().get(name, [])
    assert [owner for owner in owners if owner != "drover"] == []


@EACH_PACKAGE
def test_a_package_shadows_no_module_of_the_standard_library(name: str) -> None:
    assert name not in sys.stdlib_module_names
