"""The state of a managed cluster: declared once, folded from the log event by event."""
