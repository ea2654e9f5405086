"""The faults of the world that Drover knows, as one tree; refusals are values and are not here.

DroverError
 ├─ ConfigurationError          the operator must correct a setting, a file or a topic; exit code 2
 ├─ CorruptLogError             the log breaks one of its own rules: every reader stops
 │   └─ UnknownSchemaError      the log was written by a newer Drover: upgrade this reader
 ├─ NothingToUndoError          a plan that is to be taken back is unknown, or has completed nothing
 ├─ UnknownPlanError            a plan whose end is waited for is unknown
 ├─ LogUnavailableError         the log's Kafka did not answer in time
 │   ├─ AppendUnknownError      an append may or may not have happened: the process must exit and replay (R7)
 │   ├─ LogAccessError          it answered, and does not trust us or is not to be trusted; exit code 2
 │   └─ GroupNotLeftError       a worker that was told to stop ends without leaving its group; exit code 0
 ├─ UnusableSnapshotError       a snapshot is in doubt: the log is folded from its first record instead
 ├─ SparkJobError               the Spark job has failed; its tables stay as they are
 └─ ClusterError                a managed cluster did not do what was asked
     ├─ ClusterUnavailableError known not to have happened: nothing was sent, or the answer says so
     │   └─ ClusterAccessError  it answered, and does not trust us or is not to be trusted; exit code 2
     └─ OutcomeUnknownError     may or may not have happened: look before doing anything

They are caught in shells only. A broken invariant of our own code is an AssertionError and stops the process.
"""


class DroverError(Exception):
    """The root of every fault that Drover raises on purpose."""


class ConfigurationError(DroverError):
    """A setting, a file or a topic is wrong; the message names it and the remedy."""


class CorruptLogError(DroverError):
    """A record breaks a rule of the log (R2, R6): no reader may go on."""


class UnknownSchemaError(CorruptLogError):
    """A record has a schema version or a tag that this reader does not know: it must be upgraded."""


class NothingToUndoError(DroverError):
    """A plan whose inverse was asked for is unknown, or has completed nothing."""


class UnknownPlanError(DroverError):
    """A plan whose end is waited for is unknown, or ended so long ago that the state no longer has it."""


class LogUnavailableError(DroverError):
    """The Kafka that holds the log did not answer in time; nothing is known to be lost, retrying is allowed."""


class AppendUnknownError(LogUnavailableError):
    """An append has an unknown outcome; only a replay from the log can tell, so the process exits (R7)."""


class LogAccessError(LogUnavailableError):
    """The log's Kafka refuses the password or an operation, or its certificate is not to be trusted."""


class GroupNotLeftError(LogUnavailableError):
    """Leaving the group takes too long: the group gives the worker's shards to others when its session is over."""


class UnusableSnapshotError(DroverError):
    """A snapshot is damaged, of another log, or newer than this reader: nothing is lost, the log is the truth."""


class SparkJobError(DroverError):
    """A query of the Spark job has failed, for the cause that the message names; nothing but telemetry is concerned."""


class ClusterError(DroverError):
    """A managed cluster did not do what was asked."""


class ClusterUnavailableError(ClusterError):
    """The request has not taken effect; it may be sent again."""


class ClusterAccessError(ClusterUnavailableError):
    """A cluster refuses the password or an operation, or its certificate is not to be trusted.

    `code` is Kafka's own where it has answered with one.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class OutcomeUnknownError(ClusterError):
    """The request may have taken effect: observe the cluster before sending anything again."""
