"""Cruise Control's capacity files, in its three forms and its units."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from drover.cli.capacity_file import parse_capacities
from drover.cli.main import cli
from drover.cli.model import parse_model
from drover.errors import ConfigurationError
from drover.planner.capacities import Capacity
from tests.cli.models import write_model


def file(*brokers: tuple[int | str, dict[str, Any]]) -> str:
    listed = [{"brokerId": number, "capacity": capacity, "doc": "as shipped"} for number, capacity in brokers]
    return json.dumps({"brokerCapacities": listed})


FIGURES = {"DISK": "100000", "CPU": "100", "NW_IN": "10000", "NW_OUT": "20000"}


def test_the_default_holds_for_all_that_are_not_named_in_binary_units() -> None:
    said = parse_capacities(file(("-1", FIGURES), ("0", {**FIGURES, "DISK": "500000"})), "capacity.json")
    plain = Capacity(100_000 * 2**20, 10_000 * 2**10, 20_000 * 2**10)
    assert said.of(7) == plain
    assert said.of(0) == Capacity(500_000 * 2**20, 10_000 * 2**10, 20_000 * 2**10)


def test_a_disk_by_directory_is_their_sum_and_cores_are_cores() -> None:
    figures = {**FIGURES, "DISK": {"/a": "250000", "/b": 50000}, "CPU": {"num.cores": "16"}}
    said = parse_capacities(file((1, figures)), "capacityJBOD.json")
    assert (said.of(1).disk_bytes, said.of(1).cores) == (300_000 * 2**20, 16)
    assert said.of(2) == Capacity()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ("{}", "is not a capacity file of Cruise Control"),
        (file(("one", FIGURES)), "'one' is not the id of a broker"),
        (file((1, FIGURES), ("1", FIGURES)), "names broker 1 twice"),
        (file((1, {"NW_IN": "fast"})), "broker 1: NW_IN must be a number above 0, and not 'fast'"),
        (file((1, {"DISK": {"/a": "-5"}})), "broker 1: DISK must be a number above 0"),
        (file((1, {"NW_OUT": "nan"})), "broker 1: NW_OUT must be a number above 0"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^capacity\.json") as refused:
        parse_capacities(text, "capacity.json")
    assert problem in str(refused.value)


def test_the_file_completes_a_model_that_is_saved(tmp_path: Path) -> None:
    capacity, saved = tmp_path / "capacity.json", tmp_path / "saved.json"
    capacity.write_text(file((-1, {**FIGURES, "CPU": {"num.cores": "16"}})))
    model = write_model(tmp_path / "model.json")
    arguments = ["describe", "--model", model, "--capacity", str(capacity), "--save", str(saved)]
    done = CliRunner().invoke(cli, arguments, prog_name="drover")
    assert done.exit_code == 0, done.output
    broker = parse_model(saved.read_text(), "saved").brokers[0]
    assert (broker.cores, broker.network_in_bytes_per_s) == (16, 10_000 * 2**10)
    assert broker.total_bytes == 1_000_000_000_000
