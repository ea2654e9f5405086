"""PURE: a part of the log, and of the samples, to contributions to tables; the log's own fold does the work."""
