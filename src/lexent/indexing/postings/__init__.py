"""Posting lists of a chunk of documents: how they are packed, quantised and read."""
