"""Model clusters and logs in memory, for tests."""
