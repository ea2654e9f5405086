"""Audits in batch: what was asked for, done, refused and undone in a part of the log, and whether the log is sound."""
