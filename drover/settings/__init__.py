"""Settings of every process: flags over variables over a file."""
