"""The door to a managed cluster: the port, the real driver on Kafka's Admin RPCs, and the simulated twin."""
