"""Kafka of other versions and other shapes than the one that most tests run on."""
