"""The command line: one file a verb or family of verbs."""

from lexent.cli.app import app, main

__all__ = ["app", "main"]
