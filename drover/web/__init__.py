"""The page: one process that folds the log once and shows it to every browser; it changes nothing unless told to."""
