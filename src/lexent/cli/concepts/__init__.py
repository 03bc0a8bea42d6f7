"""lexent concepts: its verbs."""
