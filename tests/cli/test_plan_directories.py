"""What `drover plan` says of log directories."""

import json
from pathlib import Path

from drover.cli.exits import ExitCode
from tests.cli.models import BROKERS, GIGABYTE, ORDERS, broker, write_model
from tests.cli.test_plan import propose


def test_a_cordoned_broker_gets_nothing_and_is_named(tmp_path: Path) -> None:
    disk = {"path": "/data", "total_bytes": 1000 * GIGABYTE, "free_bytes": 500 * GIGABYTE, "cordoned": True}
    brokers = (*BROKERS[:3], broker(4, "a"), broker(5, "b"), broker(6, "c", log_dirs=[disk]))
    model = write_model(tmp_path / "model.json", *ORDERS, brokers=brokers)
    shown = propose(model, "drain", "3", "-o", "json")
    document = json.loads(shown.stdout)
    assert shown.exit_code == ExitCode.DONE
    assert [len(move["adding"]) for move in document["moves"]] == [1] * 6
    assert all(move["adding"] != [6] for move in document["moves"])
    assert [(one["code"], one["broker"]) for one in document["log_directories"]] == [("cordoned", 6)]
    said = "Broker 6 is cordoned, with all of its log directories (cordoned.log.dirs): it receives no replicas."
    assert said in propose(model, "drain", "3").stdout
    assert said in propose(model, "drain", "3", "--to", "-").stderr
    refused = propose(model, "add", "6")
    assert "broker 6 is cordoned: cordoned.log.dirs names all of its log directories" in refused.stdout
    assert refused.exit_code == ExitCode.USAGE
