"""The Java archives that Drover runs for itself, by lock: download, verify, keep."""
