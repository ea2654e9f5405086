"""The shape of the repository: sizes, layers, names, and that every number cited is explained."""
