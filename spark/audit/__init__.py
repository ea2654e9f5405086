"""Audits in batch: the requests, results, refusals and cancels in a part of the log, and the log's own soundness."""
