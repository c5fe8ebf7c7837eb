"""The two forms of a configuration over one graph: one label, or several as `[[graph.nodes]]`.

The graph of a case is the same for both: accounts PAID each other, USED shops, and shops are IN
towns. The one-label form reads accounts and PAID alone; the other one reads all of it, with shops
and towns as context. PAID has creation times; USED and IN have none.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelShape:
    """A label that a form reads: what follows the case's label in its name, key and columns."""

    suffix: str
    key: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """How a configuration describes the graph.

    `relations` join labels by their places in `labels`. `reconfigured` maps a text of the
    configuration to what takes its place in the fault of that name; `other_inputs` is the one of
    them under which a model that is not bound to its mapping gives other sets.
    """

    name: str
    toml: str
    labels: tuple[LabelShape, ...]
    relations: tuple[tuple[int, str, int], ...]
    reconfigured: dict[str, str]
    other_inputs: str


SHARED_RECONFIGURED = {
    "alpha = 0.2": "alpha = 0.3",
    "[conformal]": '[conformal]\nrule = "EdgeEx"',
    "[engine]": "[engine]\ncheck_nodes = 10",
    '"F': '"Other',
    'class_property = "kind"': 'class_property = "sort"',
    'type = "PAID"': 'type = "PAID"\nundirected = false',
    "[model]": '[audit]\ngroups = ["region"]\n[model]',
}
ACCOUNTS = LabelShape("", "id", ("features",))

ONE_LABEL = Form(
    name="one label",
    toml="""
[graph]
label = "{label}"
key = "id"
features = "features"
class_property = "kind"
[[graph.relationships]]
type = "PAID"
""",
    labels=(ACCOUNTS,),
    relations=((0, "PAID", 0),),
    reconfigured=SHARED_RECONFIGURED | {'features = "features"': 'features = "other"'},
    other_inputs='features = "features"',
)

SEVERAL_LABELS = Form(
    name="several labels",
    toml="""
[graph]
class_property = "kind"
[[graph.nodes]]
label = "{label}"
key = "id"
role = "classified"
columns = ["features"]
created_at = "created_at"
[[graph.nodes]]
label = "{label}Shop"
key = "id"
columns = ["size"]
[[graph.nodes]]
label = "{label}Town"
key = "name"
columns = ["people"]
[[graph.relationships]]
from = "{label}"
type = "PAID"
to = "{label}"
created_at = "created_at"
[[graph.relationships]]
from = "{label}"
type = "USED"
to = "{label}Shop"
[[graph.relationships]]
from = "{label}Shop"
type = "IN"
to = "{label}Town"
""",
    labels=(
        ACCOUNTS,
        LabelShape("Shop", "id", ("size",)),
        LabelShape("Town", "name", ("people",)),
    ),
    relations=((0, "PAID", 0), (0, "USED", 1), (1, "IN", 2)),
    reconfigured=SHARED_RECONFIGURED
    | {
        'columns = ["features"]': 'columns = ["other"]',
        'type = "USED"': 'type = "USED"\nafter_evaluation = true',
        'columns = ["size"]': "columns = []",
    },
    other_inputs='type = "USED"',
)

FORMS = {"one": ONE_LABEL, "several": SEVERAL_LABELS}
