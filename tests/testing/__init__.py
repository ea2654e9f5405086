"""What users of Drover test with: a model installation, a local one, and the fixtures for both."""
