"""Can explanations be read? Lines that say why, measured before and after grouping and naming by the documents."""

from lexent.studies.readability.readability import Plan, ReadabilityReport, readability

__all__ = ["Plan", "ReadabilityReport", "readability"]
