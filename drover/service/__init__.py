"""The common parts of long-running processes: logs, metrics, a health port, start-up and shutdown."""
