"""The authoritative state as documents in ZooKeeper, in the shapes the KIPs gave it: a projection of the log."""
