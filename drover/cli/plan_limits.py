"""The options of plans that set limits and bands: how much of a capacity may be used, and how even loads have to be."""

import re
from dataclasses import replace
from typing import Any

import click

from drover.cli.invocation import Invocation, all_options
from drover.cli.parameters import SHARE, Parsed, parse_share
from drover.planner.goals import DEFAULT_LIMITS, EVERY_LOAD, Band, Limits, load_named, with_limits

_BAND = re.compile(r"([a-z_-]+)\s*=\s*(\d+(?:\.\d+)?)\s*%(?:\s*,\s*(\d+(?:\.\d+)?)\s*%)?")


def parse_band(text: str) -> tuple[str, Band]:
    """Parse `network-in=5%`, or `all=10%,12%` for above and below. Raises `ValueError`."""
    match = _BAND.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a band: write network-in=5%, or all=10%,12% for above and below")
    name, above, below = match.groups()
    band = Band(float(above) / 100, float(below or above) / 100)
    if band.below >= 1:
        raise ValueError(f"{text!r} lets a broker bear nothing: give less than 100% below")
    if name != EVERY_LOAD:
        load_named(name)
    return name, band


def parse_limit(text: str) -> tuple[str, float]:
    """Parse `network-in=70%`. Raises `ValueError`."""
    name, equals, share = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not a limit: write network-in=70%")
    limit = (name.strip(), parse_share(share))
    with_limits(DEFAULT_LIMITS, dict([limit]), {})
    return limit


limit_options = all_options(
    click.option(
        "--disk-limit",
        type=SHARE,
        metavar="PERCENT",
        help="How full a disk may be at any moment.  [default: the setting planning.disk_limit, else 85%]",
    ),
    click.option(
        "--limit",
        "limits",
        type=Parsed("limit", parse_limit),
        multiple=True,
        metavar="LOAD=PERCENT",
        help="How much of what a broker can bear may be used: network-in=70%.  [default: 80%, of disks --disk-limit]",
    ),
    click.option(
        "--band",
        "bands",
        type=Parsed("band", parse_band),
        multiple=True,
        metavar="LOAD=PERCENT",
        help="How far from its fair share a broker may be: disk=5%, or all=10%,12% for above and below.",
    ),
)


def limits_of(invocation: Invocation, options: dict[str, Any]) -> Limits:
    """Return the limits and bands: those of options, else those of the settings; with `--model`, else the defaults."""
    defaults = DEFAULT_LIMITS if options["model"] is not None else invocation.settings().planning.planner_limits
    disk_limit = defaults.disk_limit if options["disk_limit"] is None else options["disk_limit"]
    return with_limits(replace(defaults, disk_limit=disk_limit), dict(options["limits"]), dict(options["bands"]))
