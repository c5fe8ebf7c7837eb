"""What an answer promises, in sentences of our own: no text of the graph stands in them.

A language model reads "p = 0.93" as a probability unless it is told otherwise, so each answer says
what its numbers are.
"""

P_VALUE = (
    "p is a conformal p-value: the share of calibration nodes whose own class fits them no better "
    "than this class fits the node. It is no probability of the class, and the p-values of a node "
    "do not add up to 1. A class is in the node's set where p is above the level of its run, and "
    "what is promised is the set alone."
)
NO_LEVEL_AFTERWARDS = "A threshold on p that is chosen after looking at sets is not promised."

WORKLIST = (
    f"{P_VALUE} {NO_LEVEL_AFTERWARDS} The list is ordered by p and is a list to look at: nothing "
    "is promised about how many of the listed nodes are of the class."
)
NODE = (
    f"{P_VALUE} The promise is about many nodes together and not about this one. Where doubts are "
    "listed, the promise can't be relied on now."
)
LISTS = (
    "A list promises a share of wrong nodes, over runs or over the stream as its sentence says, "
    "and says nothing of any one node. Share is the smallest promised share at which a node would "
    "be listed, and is no probability. Verdicts are about listed nodes whose class became known."
)
WHY = (
    f"{P_VALUE} Reasons say what the model's answer rests on: how p and the set change without a "
    "neighbour, a relationship type or a column. They are no causes in the world and carry no "
    "promise."
)
COVERAGE = (
    "Coverage is counted over nodes whose class became known, and says nothing of the others. A "
    "verdict compares it with what is usual when the promise holds: kept, watch, broken, not "
    "enough known yet, or no verdict. Kept is no proof for the future."
)
STATUS = (
    "This is the audit store as it stands; nothing was checked for this answer. Verify says "
    "whether it is as it was decided, coverage whether the promise was kept."
)
VERIFY = (
    "Sound means that what was compared is as it was decided, as far as the chain's key has stayed "
    "secret: everything where kind is full; where it is since, what came since a checkpoint and "
    "older runs drawn at random, with the chances that an edit of others would show. It does not "
    "say that sets are right or that coverage is kept."
)
SCHEMA = (
    "This describes what is stored and promises nothing. In MAY_BE, p is a conformal p-value and "
    "not a probability, and only relationships with in_set = true belong to a node's set."
)
