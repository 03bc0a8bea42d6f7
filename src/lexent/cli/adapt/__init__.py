"""lexent adapt: its verbs."""
