"""The whole thing: real workers, the real command line, a real Kafka."""
