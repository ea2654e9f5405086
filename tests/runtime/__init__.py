"""Hosting, topics, watchdog."""
