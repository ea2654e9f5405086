"""Moves that Drover does not manage: recorded and shown, taken over only to be cancelled."""
