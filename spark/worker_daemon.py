"""The process from which Spark forks its Python workers: it has imported the modules that all of them need.

Spark runs it as `python -m`, on every machine that has executors, in place of its own `pyspark.daemon`.
"""

import gc

from pyspark.daemon import manager
from pyspark.sql.pandas.utils import require_minimum_pandas_version

import drover.spark.contributions  # noqa: F401 - for the workers that are forked from here

# Imports pandas, which Spark's workers need before they call our functions.
require_minimum_pandas_version()
# Workers need not collect garbage among imported modules, which would copy their memory pages.
gc.freeze()

if __name__ == "__main__":
    manager()
