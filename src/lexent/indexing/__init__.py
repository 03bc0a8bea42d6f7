"""Stage 5: codes to packed segments on disk, and exact top-k over them."""

from lexent.indexing.documents import Documents, DocumentWriter
from lexent.indexing.manifest import Manifest, verify
from lexent.indexing.segment import Codes, Segment
from lexent.indexing.snapshot import Snapshot
from lexent.indexing.writer import Writer

__all__ = ["Codes", "DocumentWriter", "Documents", "Manifest", "Segment", "Snapshot", "Writer", "verify"]
