"""The documentation tells the truth: commands, options, links."""
