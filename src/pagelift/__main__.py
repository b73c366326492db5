"""`python -m pagelift` is the command `pagelift`."""

from pagelift.cli import main

main()
