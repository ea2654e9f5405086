"""What Docker users get fits the rest of the project."""
