"""The journal's contract, on memory and on Kafka."""
