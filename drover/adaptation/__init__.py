"""What moves may do while partitions lose replicas."""
