"""The Spark job: pure parts first, then one session for all, then the real cluster."""
