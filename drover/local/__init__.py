"""A real Kafka cluster and ZooKeeper on this machine as child processes, for the demo, the tests and the benchmarks."""
