"""PURE: tables of telemetry from the log, declared by each capability, independent of the sinks."""
