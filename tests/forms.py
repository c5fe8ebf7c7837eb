"""The two forms in which a project can describe the same graph, and tests that run on both.

`one-label` is `[graph]` with one label and one property of numbers, `typed` the same accounts as
`[[graph.nodes]]` with one column of kind vector. Tests of the fixture `settings`, and of all that
stands on it, use the first one unless they are marked with `both_forms` or `typed_as_well`.
"""

import pytest

from ringfence.jobs.samples.accounts import sample_toml

ONE_LABEL, TYPED = "one-label", "typed"
FORMS = (ONE_LABEL, TYPED)
PUBLISHED_SEED_KEY = f"{0:032x}"
"""A key that everyone can guess: every test run gives its nodes the same random numbers."""

both_forms = pytest.mark.parametrize("form", FORMS, indirect=True)
typed_as_well = pytest.mark.parametrize(
    ("sql_url", "form"),
    [("sqlite", ONE_LABEL), ("postgresql", ONE_LABEL), ("sqlite", TYPED)],
    indirect=True,
)
"""On both stores and in both forms, without the fourth combination: a store knows of no form."""

ONE_LABEL_GRAPH = """label = "Account"
key = "id"
features = "features"
class_property = "kind"
created_at = "created_at"
time_kind = "zoned"

[[graph.relationships]]
type = "PAID"
undirected = true
created_at = "created_at"
"""
TYPED_GRAPH = """class_property = "kind"
time_kind = "zoned"

[[graph.nodes]]
label = "Account"
key = "id"
role = "classified"
created_at = "created_at"
columns = ["features"]

[[graph.relationships]]
from = "Account"
type = "PAID"
to = "Account"
undirected = true
created_at = "created_at"

[graph.columns.Account]
features = "vector"
"""


def accounts_toml(form: str, uri: str, project: str) -> str:
    """Return the configuration of the sample accounts, trained in 25 quick epochs, once."""
    text = sample_toml(uri, project).replace(
        "learning_rate = 0.01", "learning_rate = 0.05\nmax_epochs = 25\ngraph_check = false"
    )
    assert ONE_LABEL_GRAPH in text
    return text if form == ONE_LABEL else text.replace(ONE_LABEL_GRAPH, TYPED_GRAPH)
