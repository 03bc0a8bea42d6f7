"""Every error that Lexent raises on purpose: one tree, each with an exit code and an HTTP status.

A message says what was given, what is allowed and what to type next.
"""


class LexentError(Exception):
    """Something the caller can mend; the message says how."""

    exit_code = 1
    http_status = 400


class InputError(LexentError):
    """A document, query, option or file that cannot be used as given."""

    exit_code = 2
    http_status = 422


class NotFoundError(LexentError):
    """No such document, concept, recipe, column, index or lexicon."""

    exit_code = 3
    http_status = 404


class ArtifactError(LexentError):
    """A folder on disk that is damaged, unfinished, too new or not ours."""

    exit_code = 4
    http_status = 500


class MismatchError(ArtifactError):
    """Parts that do not belong together: an index and another encoder or lexicon."""

    exit_code = 5
    http_status = 409


class WriteError(LexentError):
    """The disk refused: no permission or no space. What was there before is untouched."""

    exit_code = 6
    http_status = 507


class SyncError(WriteError):
    """The disk did not confirm a write: whether it outlasts a power failure is not known."""


class MissingExtraError(LexentError):
    """An optional part is not installed."""

    exit_code = 7
    http_status = 501

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        super().__init__(f'{purpose} needs the package "{package}"; install it: pip install "lexent[{extra}]"')


class LockedError(LexentError):
    """Another process is writing to the index."""

    exit_code = 8
    http_status = 423


class EndpointError(LexentError):
    """A language model that does not answer, or refuses to."""

    exit_code = 9
    http_status = 502


class ResourceError(LexentError):
    """The system has no more open files or memory to give for now; what lies on the disk is whole."""

    exit_code = 10
    http_status = 503


class LexentWarning(UserWarning):
    """Something the caller should know; the command line shows it as a note."""


class FieldWarning(LexentWarning):
    """Values of a metadata field were converted to the kind that the field has in its index."""


class SkippedWarning(LexentWarning):
    """Rows or files were left out, as on_error="skip" asked."""


class TrainingWarning(LexentWarning):
    """A training went on without something: a learning rate that diverged, latents that never fire."""
