"""Kill tests: real workers on a real cluster, ended at bad moments."""
