"""Fewer slots for brokers whose replicas lag, and no new copies while a partition is below min.insync.replicas."""
