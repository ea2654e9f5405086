"""The state of a managed cluster as the log says it is: declared once, folded event by event."""
