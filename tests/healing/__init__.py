"""Healing: brokers that stay away are replaced."""
