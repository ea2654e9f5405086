"""Tests of what every capability is made of."""
