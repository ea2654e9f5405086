"""docs/settings.md has every setting, and its links lead somewhere."""

from drover.settings.reference import described_settings, settings_document
from drover.settings.variables import shape_at
from tests.architecture.repository import ROOT


def test_the_reference_is_made_from_the_settings() -> None:
    written = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert written == settings_document(), "python -m drover.settings.reference > docs/settings.md"


def test_every_setting_that_a_variable_may_name_is_in_it() -> None:
    described = described_settings()
    assert len({setting.path for setting in described}) == len(described) > 100
    assert all(shape_at(setting.path) is not None for setting in described)
    assert ("clusters", "NAME", "healing", "failure_interval_ms") in {setting.path for setting in described}
