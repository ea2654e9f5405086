"""Settings: properties files, flags, contexts, tokens, files that change."""
