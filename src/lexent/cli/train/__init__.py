"""lexent train: a file a kind of training."""
