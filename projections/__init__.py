"""A projection of the log: the state as documents in ZooKeeper, in the forms of the KIPs."""
