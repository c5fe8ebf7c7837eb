"""The sample graph of several labels in Neo4j: accounts arrive in batches, with their devices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.neo4j.driver import Graph
from ringfence.connector.neo4j.write.rows import create_rows, join_rows, set_rows
from ringfence.connector.progress import Progress
from ringfence.jobs.samples.accounts import Batch
from ringfence.models.sample.payments import PaymentGraph

_GRAPH_TOML = """# The demo's configuration; for your own graph `ringfence init` writes one.
# Every setting: docs/configuration.md
project = "demo"

[neo4j]
uri = "embedded"

[audit]
url = "sqlite:///.ringfence/audit.db"
groups = ["region"]

[graph]
class_property = "kind"

[[graph.nodes]]
label = "Account"
role = "classified"          # its nodes get prediction sets
key = "id"
created_at = "created_at"
columns = ["balance", "country", "channel", "opened", "verified"]

[[graph.nodes]]
label = "Device"
key = "id"
columns = ["system", "emulated", "first_seen"]

[[graph.nodes]]
label = "Merchant"
key = "name"
columns = ["trade", "since", "rating"]

[[graph.relationships]]
from = "Account"
type = "SENT_TO"
to = "Account"
created_at = "created_at"
columns = ["amount"]

[[graph.relationships]]
from = "Account"
type = "USES"
to = "Device"
created_at = "created_at"

[[graph.relationships]]
from = "Account"
type = "PAYS"
to = "Merchant"
created_at = "created_at"
columns = ["amount"]

[graph.columns.Account]
balance = "use"              # tells more of the class than the others, and is known on arrival
"""
PAYMENTS_TOML = (
    _GRAPH_TOML
    + """
[model]
network = "auto"             # typed_sage, trees or their mean: the best on validation nodes

[conformal]
alpha = 0.1                  # miss at most 10 % of each kind of account ...
promise = "class"            # (calibrated among accounts of that kind alone)

[conformal.classes]
mule = 0.05                  # ... and at most 5 % of mules

[[lists]]
name = "investigate"
class = "mule"
may_be_wrong = 0.3           # on average over runs, at most 30 % of these accounts are no mules

[[lists]]
name = "clear"
not = "mule"
may_be_wrong = 0.03          # on average over runs, at most 3 % of these accounts are mules
"""
)
AMOUNTS = 'columns = ["amount"]\n'
STORY_TOML = (  # without amounts: they do not drift, and would make up for what does
    _GRAPH_TOML.replace('project = "demo"', 'project = "story"').replace(AMOUNTS, "")
    + """
[conformal]
alpha = 0.1
rule = "NodeEx"
calibration_set = "frozen"   # so that nothing but the model version brings coverage back

[model]
shadow = true                # a candidate scores the accounts of every run too
patience = 30                # so that a training takes seconds

[schedule]
retrain = "every hour"       # how often the scheduler asks whether a training is due

[retrain]
when = ["alarm"]             # one is due when the alarm `drift` fires
promote = "manual"           # a person decides
"""
)
ACCOUNT, DEVICE, MERCHANT = ("Account", "id"), ("Device", "id"), ("Merchant", "name")
Flags = NDArray[np.bool_]


def load_merchants(graph: Graph, sample: PaymentGraph) -> None:
    """Write all merchants; they were there before any account."""
    create_rows(graph, MERCHANT[0], list(sample.merchants))


def load_accounts(
    graph: Graph, sample: PaymentGraph, batch: Batch, labelled: Flags, progress: Progress
) -> int:
    """Write a batch of accounts with all that joins them; return how many relationships.

    `labelled` says whose kind is known, bool over all accounts. A device is written with the first
    account that uses it. The server stamps accounts and relationships on arrival.
    """
    names = sample.accounts.classes
    rows = [
        {**sample.columns[at], "kind": names[sample.accounts.y[at]] if labelled[at] else None}
        for at in batch.nodes.tolist()
    ]
    create_rows(graph, ACCOUNT[0], rows, stamp="created_at", progress=progress)
    here = np.zeros(sample.accounts.nodes, np.bool_)
    here[batch.nodes] = True
    uses = sample.uses[:, here[sample.uses[0]]]
    paid = np.flatnonzero(here[sample.pays[0]])
    devices = [sample.devices[at] for at in np.unique(uses[1]).tolist()]
    create_rows(graph, DEVICE[0], devices, unless_key=DEVICE[1])
    keys: dict[str, list[tuple[Any, Any]]] = {
        "USES": [(a, sample.devices[b]["id"]) for a, b in uses.T.tolist()],
        "PAYS": [(a, sample.merchants[b]["name"]) for a, b in sample.pays[:, paid].T.tolist()],
        "SENT_TO": [tuple(pair) for pair in sample.accounts.edges[:, batch.edges].T.tolist()],
    }
    amounts = {
        "PAYS": [sample.payments[at] for at in paid.tolist()],
        "SENT_TO": [sample.transfers[at] for at in batch.edges.tolist()],
    }
    ends = {"USES": DEVICE, "PAYS": MERCHANT, "SENT_TO": ACCOUNT}
    for type_, pairs in keys.items():
        join_rows(
            graph,
            ACCOUNT,
            type_,
            ends[type_],
            pairs,
            "created_at",
            progress,
            amounts.get(type_, ()),
        )
    return sum(map(len, keys.values()))


def reveal_kinds(graph: Graph, sample: PaymentGraph, accounts: NDArray[np.int64]) -> None:
    """Make the kinds of some accounts known."""
    names = sample.accounts.classes
    rows = [{"id": at, "kind": names[sample.accounts.y[at]]} for at in accounts.tolist()]
    set_rows(graph, *ACCOUNT, rows)
