"""What is made ready while Java starts and plans: modules, and the process from which Python workers are forked."""

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    import pyarrow as pa

# A session must not end under it.
ENDS_WITHIN_S = 30.0


@contextmanager
def imported_meanwhile(*modules: str) -> Iterator[None]:
    """Import modules in a thread: starting Java leaves this process, and one of two processors, nothing to do.

    One that cannot be imported fails later, where it is needed.
    """
    thread = threading.Thread(target=_import, args=modules, name="imports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _import(*modules: str) -> None:
    for name in modules:
        with suppress(ImportError):
            importlib.import_module(name)


@contextmanager
def workers_warmed_up(session: SparkSession) -> Iterator[None]:
    """Have Spark start what its Python workers are forked from, in a thread, while the driver prepares the first query.

    Importing what they need takes two seconds of another processor. Whatever fails here fails later where it is told.
    """
    thread = threading.Thread(target=_use_a_worker, args=(session,), name="warm-up", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(ENDS_WITHIN_S)


def _use_a_worker(session: SparkSession) -> None:
    with suppress(PySparkException, Py4JError, ConnectionError):
        session.range(1).mapInArrow(_same, "id bigint").collect()


def _same(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    yield from batches
