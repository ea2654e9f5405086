"""The entry point of the pytest plugin: its fixtures are there wherever pytest-asyncio is."""

from importlib.util import find_spec

pytest_plugins = ("drover.testing.fixtures",) if find_spec("pytest_asyncio") is not None else ()
