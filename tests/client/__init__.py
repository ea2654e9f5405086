"""The client: what it reads and sends, without and with a real cluster."""
