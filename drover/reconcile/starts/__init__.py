"""Scheduling: the queue, the order, and the limits for starting."""
