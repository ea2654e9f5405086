"""The Faust side."""
