"""Write and execute the two notebooks of this folder (`make notebooks`).

Their cells stand here, as text that can be read and compared. Each notebook is executed in an empty
folder with an embedded Neo4j of its own; what it prints is kept, and nothing of this machine: no
path, no name of a kernel's file, no time of a cell.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
SECONDS_FOR_A_CELL = 600

DECISION = """
# From a graph to a decision
A sample graph of payment accounts; the question is which accounts somebody should look at, and
how many mules are missed that way. It takes about two minutes. Needs `ringfence[demo]`.
---
First the demo: it loads accounts, trains, and lets batches of new accounts arrive. Then its
Neo4j is started again, so that the cells below find it running.
===
import subprocess
import sys

import pandas as pd
import plotly.io
import ringfence
from ringfence.connector.neo4j import embedded

plotly.io.renderers.default = "plotly_mimetype"   # nothing is loaded from another host
demo = "demo --no-serve --nodes 3000 --arriving 4 --json"
subprocess.run([sys.executable, "-m", "ringfence", *demo.split()], check=True, capture_output=True)
server = embedded.start(".ringfence/demo/.ringfence/neo4j")
project = ringfence.open(".ringfence/demo/ringfence.toml")
project
===
project.query("MATCH (n) WHERE n:Account OR n:Device OR n:Merchant "
              "RETURN labels(n)[0] AS label, count(*) AS nodes ORDER BY label")
---
## The sets
One row per evaluated account, with the p-value of every class.
===
sets = project.sets()
sets[["key", "classes", "size", "run", "p mule"]].head()
===
sets["size"].value_counts().sort_index().rename("accounts").to_frame()
---
## Was the promise kept?
Over all accounts, and for each class. The demo promises each class a share of its own, `may miss`:
one in twenty mules, one in ten of every other kind.
===
coverage = project.coverage()
columns = ["name", "known", "coverage", "low", "high", "verdict"]
coverage.loc[coverage["slice"] == "total", columns].tail(1)
===
newest = coverage["seq"].max()
classes = coverage[(coverage["slice"] == "class") & (coverage["seq"] == newest)]
classes[columns].assign(**{"may miss": classes["alpha"]})
===
project.figure("coverage")
---
## A rule for looking
Looking at an account costs 1. A mule that nobody looked at costs 25. Accounts are looked at in
the order of the p-value of `mule`. Accounts of known kind say what each cut would have cost.
===
LOOK, MISS = 1, 25
known = sets.dropna(subset=["class"])
mule = known["class"] == "mule"
rows = []
for cut in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5):
    looked = known["p mule"] > cut
    missed = int((mule & ~looked).sum())
    rows.append({"look where p >": cut, "looked at": int(looked.sum()),
                 "mules found": int((mule & looked).sum()), "mules missed": missed,
                 "cost": LOOK * int(looked.sum()) + MISS * missed})
costs = pd.DataFrame(rows).set_index("look where p >")
costs
===
cut = costs["cost"].idxmin()
todo = project.worklist("mule", min_p=cut)
print(f"look where p > {cut:g}: {len(todo)} accounts whose kind is not known yet")
todo[["key", "p", "size", "degree", "run"]].head(10)
---
The cut was chosen on the same accounts that its cost was measured on: with few known mules that
is optimistic. `ringfence advise --class mule` measures it on validation accounts, and
`[conformal.classes] mule = 0.05` is how the demo's file promises that, and the audit checks it.
## The first account of the list
===
first = project.explain(todo["key"].iloc[0])
print(first.attrs["words"])
first
===
embedded.stop(".ringfence/demo/.ringfence/neo4j");
"""

DRIFT = """
# Watching drift
A graph whose newcomers change half-way. Two projects look at the same graph: one calibrates
once, as the paper does; the other has the default, a window of the newest known nodes at a
level that follows the misses. It takes about two minutes. Needs `ringfence[demo]`.
===
import numpy as np
import pandas as pd
import plotly.io
import ringfence
from neo4j import GraphDatabase
from pathlib import Path
from ringfence.connector.neo4j import embedded

plotly.io.renderers.default = "plotly_mimetype"   # nothing is loaded from another host
server = embedded.start("graph/neo4j")
driver = GraphDatabase.driver(server.uri, auth=(server.user, server.password))
rng = np.random.default_rng(1)
CLASSES = ("calm", "busy", "odd")
CENTRES = rng.normal(0, 1.6, (3, 8))
---
Accounts arrive in batches. Each pays three earlier ones, mostly of its own class. From batch 6
on the features of `odd` move towards those of `busy`: what the network learned is no longer so.
===
kinds = []

def arrive(count, moved):
    \"\"\"New accounts with features and payments; returns their keys.\"\"\"
    first = len(kinds)
    centres = CENTRES.copy()
    centres[2] = (1 - moved) * CENTRES[2] + moved * CENTRES[1]
    nodes, payments = [], []
    for key in range(first, first + count):
        kind = int(rng.choice(3, p=[0.5, 0.3, 0.2]))
        features = centres[kind] + rng.normal(0, 1.4, 8)
        nodes.append({"id": key, "features": features.tolist()})
        if kinds:
            near = [i for i in rng.integers(0, len(kinds), 8) if kinds[i] == kind][:2]
            others = rng.integers(0, len(kinds), 1).tolist()
            payments += [{"from": key, "to": int(to)} for to in {*near, *others}]
        kinds.append(kind)
    driver.execute_query(
        "UNWIND $nodes AS row CREATE (a:Account {id: row.id, features: row.features, "
        "created_at: datetime.realtime()})", nodes=nodes)
    driver.execute_query(
        "UNWIND $payments AS row MATCH (a:Account {id: row.from}), (b:Account {id: row.to}) "
        "CREATE (a)-[:PAID {created_at: datetime.realtime()}]->(b)", payments=payments)
    return list(range(first, first + count))

def reveal(keys):
    \"\"\"The kind of accounts becomes known.\"\"\"
    rows = [{"id": key, "kind": CLASSES[kinds[key]]} for key in keys]
    driver.execute_query("UNWIND $rows AS row MATCH (a:Account {id: row.id}) "
                         "SET a.kind = row.kind", rows=rows)
===
CONFIGURATION = '''
project = "{name}"
[neo4j]
uri = "{uri}"
[audit]
url = "sqlite:///audit.db"
[graph]
label = "Account"
key = "id"
features = "features"
class_property = "kind"
[[graph.relationships]]
type = "PAID"
[conformal]
{conformal}
'''
import os
os.environ["RINGFENCE_NEO4J_PASSWORD"] = server.password
os.environ["RINGFENCE_SEED_KEY"] = "0" * 32   # published, so that everyone gets the same sets
folder = Path("graph")
modes = {"frozen": 'calibration_set = "frozen"', "window": 'calibration_set = "window"'}
projects = {}
for name, conformal in modes.items():
    file = folder / f"{name}.toml"
    file.write_text(CONFIGURATION.format(name=name, uri=server.uri, conformal=conformal))
    projects[name] = ringfence.open(file)
    projects[name].migrate()
arrived = arrive(900, moved=0)
reveal(arrived[:700])
for project in projects.values():
    project.train()
    project.score()
projects["window"]
---
Twelve batches of 120 accounts. The kinds of a batch become known one batch later.
===
waiting = arrived[700:]
for batch in range(1, 13):
    new = arrive(120, moved=0 if batch < 6 else 0.8)
    for project in projects.values():
        project.score()
    reveal(waiting)
    waiting = new
    for project in projects.values():
        project.audit()
---
## Coverage of each run
===
runs = pd.DataFrame({
    name: project.coverage().query("slice == 'run'").set_index("seq")["coverage"]
    for name, project in projects.items()
})
runs.round(3)
===
before, after = runs.loc[2:6].mean(), runs.loc[7:].mean()
pd.DataFrame({"runs 2 to 6": before, "from run 7 on": after}).round(3)
---
The frozen calibration promised that nothing changes; in its later runs it covers less than 90 %.
The window sees the misses of newly known accounts, a batch late, and makes its sets larger: over
the runs since the change it stays near 90 %. A run has 120 accounts, so a few points up or down
are chance, and neither project promises a single run.
===
sizes = pd.DataFrame({
    name: project.coverage().query("slice == 'run'").set_index("seq")["mean_size"]
    for name, project in projects.items()
})
sizes.round(2)
---
## What the audit says
===
for name, project in projects.items():
    total = project.coverage().query("slice == 'total'").iloc[-1]
    print(f"{name}: {total['words']}")
===
projects["frozen"].figure("cumulative")
===
driver.close()
embedded.stop("graph/neo4j");
"""

NOTEBOOKS = {"from-graph-to-decision.ipynb": DECISION, "watching-drift.ipynb": DRIFT}


def cells(text: str) -> Iterator[nbformat.NotebookNode]:
    """Yield the cells of a text: `===` begins code, `---` begins prose."""
    kind = "---"
    for part in re.split(r"^(===|---)\n", text.strip("\n"), flags=re.MULTILINE):
        if part in ("===", "---"):
            kind = part
        elif part.strip():
            source = part.strip("\n")
            is_code = kind == "==="
            make = nbformat.v4.new_code_cell if is_code else nbformat.v4.new_markdown_cell
            yield make(source)


def build(text: str) -> nbformat.NotebookNode:
    """Return a notebook that was not executed; its cells are numbered, not named at random."""
    made = nbformat.v4.new_notebook(cells=list(cells(text)))
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return made


def execute(made: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Execute a notebook in a folder; an error in a cell is an error here."""
    client = NotebookClient(
        made, timeout=SECONDS_FOR_A_CELL, resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )  # fmt: skip
    client.execute()
    made.metadata.pop("language_info", None)
    for cell in made.cells:
        kept = [one for one in cell.get("outputs", ()) if one.get("name") != "stderr"]
        if cell.cell_type == "code":
            cell.outputs = kept
    return made


if __name__ == "__main__":
    for name in sys.argv[1:] or NOTEBOOKS:
        with tempfile.TemporaryDirectory(prefix="ringfence-notebook-") as empty:
            done = execute(build(NOTEBOOKS[name]), Path(empty))
        nbformat.write(done, HERE / name)
        sys.stdout.write(f"{name}\n")
