"""What is installed: the core alone, the extras, and what says which one is missing."""
