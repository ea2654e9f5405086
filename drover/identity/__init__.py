"""Which Kafka cluster answers under a name, and whether it is the one that was first seen there."""
