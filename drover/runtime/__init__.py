"""Composition root: settings, clock, shard hosting, the worker service, its watchdog, health and metrics."""
