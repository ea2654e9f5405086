"""Tests of the cluster port, the real driver, the simulated twin and its model."""
