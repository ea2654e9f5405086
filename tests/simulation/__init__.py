"""The deterministic simulation: shard cores, an in-memory log and model clusters in one thread and in virtual time."""
