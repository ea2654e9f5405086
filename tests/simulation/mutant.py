"""One deliberate fault: a small change of the source. Never applied to the checkout."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: in the file at `path` the text `old`, which stands there once, becomes `new`.

    `layer` names tests that catch it, for a fault that seeds find rarely or never.
    """

    name: str
    path: str
    old: str
    new: str
    layer: str = ""

    def apply(self, root: Path) -> None:
        """Put the fault into a copy of the source tree."""
        file = root / self.path
        text = file.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.name}: its text stands {text.count(self.old)} times in {self.path}"
        file.write_text(text.replace(self.old, self.new), encoding="utf-8")
