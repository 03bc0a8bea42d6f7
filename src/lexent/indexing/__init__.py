"""Stage 5: weights to postings on disk, and exact top-k over them."""

from lexent.indexing.documents import Documents, DocumentWriter
from lexent.indexing.manifest import Manifest, verify
from lexent.indexing.postings import Postings

__all__ = ["DocumentWriter", "Documents", "Manifest", "Postings", "verify"]
