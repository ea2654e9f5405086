"""What every capability of a managed cluster is made of: the contract, the batch under way, what was observed."""
