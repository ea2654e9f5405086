"""`python -m drover`: the command line, where the script is not on the path."""

from drover.cli.main import main

main()
