"""Stage 5: impacts to packed segments on disk, and changes to them.

Nothing is imported here: `topk` reads `indexing.postings`, and the rest of this package stands above `topk`.
"""
