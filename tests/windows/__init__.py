"""Maintenance windows as text."""
