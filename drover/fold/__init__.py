"""The fold of events into the state: a module for each slice, the rules of the log (R1-R9), and snapshots."""
