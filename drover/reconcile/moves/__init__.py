"""PURE: the domain. What may be asked, what follows from it, and what the cluster must be told next.

Nothing here reads a clock, draws a number at random or talks to anybody; see docs/kip-rules.md for the rules cited.
"""
