"""Tests of the shard core."""
