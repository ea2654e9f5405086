"""Drover's figures: what is fast, beside what, and within which bounds. Run as `python -m bench`."""
