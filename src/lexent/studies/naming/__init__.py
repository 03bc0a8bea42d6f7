"""Are the names of concepts true? Tests of names by judges that see nothing else, each beside a control."""

from lexent.evaluation.naming.grades import Outcome, grade
from lexent.evaluation.naming.questions import Named, Option, Pair, Question, Task

__all__ = ["Named", "Option", "Outcome", "Pair", "Question", "Task", "grade"]
