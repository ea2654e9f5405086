"""The settings of the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from drover.runtime.addresses import parse_address


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The page: `listen` is where it is served (port 0: any free one).

    `hosts` are further names that browsers may ask for it by, such as that of a proxy before it; a request for any
    other host is refused, so that no foreign page can read this one.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    listen: str = "127.0.0.1:8160"
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an address that cannot be listened on."""
        parse_address(self.listen)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        return parse_address(self.listen)
