"""The command line: one file a verb."""

from lexent.cli.app import app, main

__all__ = ["app", "main"]
