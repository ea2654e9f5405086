"""Brokers that should not lead (KIP-491)."""
