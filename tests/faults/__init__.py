"""Real faults: processes, disks and clocks of a local cluster and its workers go wrong while everything is in use."""
