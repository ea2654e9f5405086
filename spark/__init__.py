"""Progress tables, metrics and audits from the event log, with Spark: telemetry, and never part of the safety loop."""
