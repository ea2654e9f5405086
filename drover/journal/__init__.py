"""The event log on Kafka: idempotent append, tail, and the in-memory twin that passes the same contract suite."""
