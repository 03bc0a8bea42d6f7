"""lexent concepts: a file a verb."""
