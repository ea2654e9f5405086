"""The pictures of the page in docs/ are all there; `tests/web/test_page.py` looks at every view itself."""

import re
from pathlib import Path

from PIL import Image

from tests.web.pictures import ALL, PICTURES, SCHEMES, SIZES


def test_every_picture_is_there_and_is_shown() -> None:
    wanted = {f"{one.name}-{width}-{scheme}.png" for one in ALL for width, _ in SIZES for scheme in SCHEMES}
    assert {file.name for file in PICTURES.glob("page-*.png")} == wanted
    assert set(re.findall(r"\((page-[\w-]+\.png)\)", (PICTURES / "README.md").read_text(encoding="utf-8"))) == wanted
    for name in wanted:
        width = int(name.split("-")[-2])
        with Image.open(Path(PICTURES / name)) as drawn:
            assert drawn.size == (width, dict(SIZES)[width])
