"""The state of a managed cluster, as the log has it: declared once, folded event by event."""
