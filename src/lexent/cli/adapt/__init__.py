"""lexent adapt: a file a verb."""
