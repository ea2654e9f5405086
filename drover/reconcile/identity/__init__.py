"""The identity of the Kafka cluster behind a name: the one first seen there, or another."""
