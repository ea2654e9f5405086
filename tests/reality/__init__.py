"""The recorder: the same random scripts on the model cluster and on a real Kafka, whose visible results must agree."""
