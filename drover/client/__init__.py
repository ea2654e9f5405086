"""What any Python program uses: send a command, await its recorded outcome, read the log."""
