"""An HTTP API over indexes, and the explorer page. Needs the extra: pip install "lexent[serve]"."""
