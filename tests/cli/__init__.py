"""The command line: pure parts, wrong input, exit codes, and every command on a real log."""
