"""PURE: tables of telemetry, made from the log by every capability for itself; which sink keeps them is not known."""
