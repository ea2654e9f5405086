"""The recipes that pass the history on: run as they are written, with stand-ins for `drover` and `curl`."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from drover.client.views.history_rows import Selection, Wanted
from drover.events.reassignments import Blocker
from tests.docs.shell_blocks import ROOT
from tests.docs.test_commands import parse
from tests.web.scene import Scene, keys

RECIPES = re.findall(r"^```bash\n(.*?)^```", (ROOT / "docs/operating.md").read_text(), flags=re.MULTILINE | re.DOTALL)
STAND_INS = """
drover() { cat "$ROWS"; }
curl() { while [ "$1" != -d ]; do shift; done; printf '%s\\n' "$2"; }
"""


def test_the_recipes_call_drover_with_options_that_exist() -> None:
    assert len(RECIPES) == 2
    for recipe in RECIPES:
        parse(tuple(recipe.splitlines()[0].removesuffix(" |").split()))


def test_what_the_recipes_send(tmp_path: Path) -> None:
    if shutil.which("jq") is None:
        return  # the recipes need it, and a machine without it cannot run them
    scene = Scene()
    scene.open_plan("friday", "ann", 'the "new" disks', None, keys("orders", 1))
    scene.block(keys("orders", 1)[0], Blocker.NO_LEADER, "it must return")
    selection = Selection(Wanted())
    selection.add(scene.news)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row.document()) + "\n" for row in selection.rows()))
    environment = {**os.environ, "ROWS": str(rows), "PAGERDUTY_ROUTING_KEY": "k", "SLACK_WEBHOOK_URL": "https://slack"}
    sent = [
        subprocess.run(["bash", "-c", STAND_INS + recipe], env=environment, capture_output=True, text=True, check=True)
        for recipe in RECIPES
    ]
    slack, pages = ([json.loads(line) for line in done.stdout.splitlines()] for done in sent)
    assert [message["text"] for message in slack] == [
        'prod: ann asked to move 1 partition in plan friday: the "new" disks',
        "prod: orders:0 of plan friday blocked, no-leader: it must return",
    ]
    (page,) = pages
    assert page["payload"]["summary"] == "orders:0 of plan friday blocked, no-leader: it must return"
