"""The projection: documents from the log, the store's contract, and trees that survive every fault."""
