"""Drover's tests; every folder here mirrors one of the packages."""
