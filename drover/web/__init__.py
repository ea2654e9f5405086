"""The page: one process that folds the log once and shows it to every browser; it is read-only by default."""
