"""Whole shards under hostile and under large honest input, from a seed."""
