"""Reassignments in flight: which call comes next, and what observations and answers mean for it.

PURE: it reads no clock, no random numbers and no cluster. docs/kip-rules.md explains the rules that are cited.
"""
