"""What every process that runs for long has: logs, metrics, a health port, signals."""
