"""The parts that all capabilities share: their contract, the batch under way, the observations."""
