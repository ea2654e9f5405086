"""PURE: the sans-I/O machine around the domain: the log's validity rules, the fold, and the core that writes."""
