"""Failed brokers (KIP-46)."""
