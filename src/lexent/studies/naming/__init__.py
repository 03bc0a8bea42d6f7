"""Are the names of concepts true? Tests of names by judges that see nothing else, each beside a control."""

from lexent.studies.naming.grades import Outcome, grade
from lexent.studies.naming.questions import Named, Option, Pair, Question, Task

__all__ = ["Named", "Option", "Outcome", "Pair", "Question", "Task", "grade"]
