"""`python -m lexent`."""

from lexent.cli import main

main()
