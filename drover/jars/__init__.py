"""The Java archives that Drover runs for itself, by lock: download, verify, keep; and the Java that runs them."""

from drover.jars.cache import cache_directory, writable_directory
from drover.jars.ensure import class_path, ensure
from drover.jars.java import find_java
from drover.jars.lock import KAFKA_VERSION, kafka_set, kafka_versions

__all__ = [
    "KAFKA_VERSION",
    "cache_directory",
    "class_path",
    "ensure",
    "find_java",
    "kafka_set",
    "kafka_versions",
    "writable_directory",
]
