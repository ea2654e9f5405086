"""PURE: the file of `--capacity`: Cruise Control's capacity.json, capacityJBOD.json or capacityCores.json."""

from collections.abc import Mapping

import msgspec

from drover.errors import ConfigurationError
from drover.events.undecodable import UNDECODABLE
from drover.planner.capacities import Capacities, Capacity

# Cruise Control's own units: a disk in MB and a network in KB, both binary (HolderUtils.java).
MEBIBYTE, KIBIBYTE = 1024 * 1024, 1024
DEFAULT_BROKER = -1
CORES = "num.cores"
# Cruise Control writes every figure as text; numbers mean the same.
Figure = str | int | float


class _Figures(msgspec.Struct, frozen=True, rename="upper"):
    disk: Figure | Mapping[str, Figure] | None = None
    cpu: Figure | Mapping[str, Figure] | None = None
    nw_in: Figure | None = None
    nw_out: Figure | None = None


class _OfBroker(msgspec.Struct, frozen=True, rename="camel"):
    broker_id: int | str
    capacity: _Figures


class _File(msgspec.Struct, frozen=True, rename="camel"):
    broker_capacities: tuple[_OfBroker, ...]


def parse_capacities(text: str, name: str) -> Capacities:
    """Parse a capacity file. Broker -1 is the default for all that are not named, and for what is not said of others.

    A disk by directory is the sum of its directories. The processor counts as `{"num.cores": "16"}` only: a percentage
    does not say how much a broker can do, so that it is left out as unknown. Raises `ConfigurationError` that names the
    file and the place.
    """
    try:
        file = msgspec.json.decode(text.removeprefix("\ufeff"), type=_File)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{name} is not a capacity file of Cruise Control: {error}") from None
    except UNDECODABLE as error:
        raise ConfigurationError(f"{name} is not JSON: {error}") from None
    capacities: dict[int, Capacity] = {}
    for each in file.broker_capacities:
        number = _broker(each.broker_id, name)
        if number in capacities:
            raise ConfigurationError(f"{name} names broker {number} twice")
        capacities[number] = _capacity(each.capacity, f"{name}: broker {number}")
    default = capacities.pop(DEFAULT_BROKER, Capacity())
    return Capacities(default, capacities)


def _broker(text: int | str, name: str) -> int:
    if isinstance(text, int) or text.removeprefix("-").isdecimal():
        number = int(text)
        if number >= DEFAULT_BROKER:
            return number
    raise ConfigurationError(f"{name}: {text!r} is not the id of a broker; -1 is the default")


def _capacity(figures: _Figures, where: str) -> Capacity:
    disk = figures.disk
    parts = list(disk.values()) if isinstance(disk, Mapping) else [] if disk is None else [disk]
    cores = figures.cpu.get(CORES) if isinstance(figures.cpu, Mapping) else None
    return Capacity(
        disk_bytes=round(sum(_number(part, f"{where}: DISK") for part in parts) * MEBIBYTE) if parts else None,
        network_in_bytes_per_s=_rate(figures.nw_in, f"{where}: NW_IN"),
        network_out_bytes_per_s=_rate(figures.nw_out, f"{where}: NW_OUT"),
        cores=None if cores is None else _number(cores, f"{where}: CPU"),
    )


def _rate(figure: Figure | None, where: str) -> float | None:
    return None if figure is None else _number(figure, where) * KIBIBYTE


def _number(figure: Figure, where: str) -> float:
    try:
        number = float(figure)
    except ValueError:
        number = 0.0
    if not 0 < number < 2**63 / MEBIBYTE:
        raise ConfigurationError(f"{where} must be a number above 0, and not {figure!r}")
    return number
