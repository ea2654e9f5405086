"""Access to a managed cluster: the port, and the driver on Kafka's Admin RPCs."""
