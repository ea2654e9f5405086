"""One Spark session for all tests of this process; it costs about ten seconds."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.session import open_session


class Kept:
    """The session of all tests, which neither a job nor an audit may end."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        pass


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two threads on this machine, as `drover spark run` has by default."""
    session = open_session("tests", directory=tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
