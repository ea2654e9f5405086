"""The local cluster: pure parts, child processes, and one real cluster of three brokers."""
