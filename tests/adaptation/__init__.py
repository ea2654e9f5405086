"""Fewer slots while replicas lag, and no new copies below min.insync.replicas."""
