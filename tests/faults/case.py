"""A project to be hurt: its form and settings, and a journal of what went into the graph."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import URL, make_url, update

from ringfence.connector.keys import decode_key
from ringfence.connector.neo4j.driver import Graph, connect
from ringfence.connector.store import tables
from ringfence.connector.store.engine import Store, open_store
from ringfence.jobs.config.load import load
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.setup.migrate import run_migrations
from tests.faults.forms import Form
from tests.faults.worker import Outcome, Task, start

LEASE_SECONDS = 1.5
CLASSES = ("calm", "busy", "odd")
WIDTH = 4
NEW_SHOP = 0.25  # share of accounts that come with a shop of their own

CONFIG = """
project = "{name}"
[neo4j]
uri = "{uri}"
{graph}
[model]
hidden = 8
max_epochs = 5
graph_check = false
shadow = true
[conformal]
alpha = 0.2
[engine]
overlap_seconds = 0.0
write_rows = 5
lease_seconds = {lease}
"""

NODES = """
UNWIND $nodes AS node
CREATE (n:{label} {{id: node.id, features: node.features, other: reverse(node.features),
  region: CASE node.id % 2 WHEN 0 THEN 'north' ELSE 'south' END,
  created_at: coalesce(node.created, datetime.realtime())}})
SET n.kind = node.kind
MERGE (shop:{label}Shop {{id: node.shop}})
  ON CREATE SET shop.size = node.size
MERGE (town:{label}Town {{name: 'town ' + node.shop % 5}})
  ON CREATE SET town.people = 1000 * node.size
MERGE (shop)-[:IN]->(town)
CREATE (n)-[:USED]->(shop)
WITH n, node WHERE node.other IS NOT NULL
MATCH (o:{label} {{id: node.other}})
CREATE (n)-[:PAID {{created_at: datetime.realtime()}}]->(o)
"""

REVEAL = "UNWIND $nodes AS node MATCH (n:{label} {{id: node.id}}) SET n.kind = node.kind"


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the databases are; `sql` holds no password, `secrets` are environment variables."""

    neo4j_uri: str
    neo4j_auth: tuple[str, str]
    sql: str
    folder: Path


@dataclass(slots=True)
class Case:
    """One project: grow its graph, let classes become known, run workers, remember the truth.

    `label` is that of its accounts, `shops` are the keys of shops that are there. `truth` is the
    class that the graph has or will have of a node; `withdrawn` are evaluated nodes whose class was
    taken away again, `shown` the classes that such nodes have had; `gone` are nodes that were
    deleted, `replaced` calibration nodes that were, whether or not their key came again; `sibling`
    is another project in the same folder, with the same nodes, and takes part in recovery and check
    where it was `sibling_hurt`, and at the end.
    """

    form: Form
    label: str
    settings: Settings
    config: Path
    environment: dict[str, str]
    graph: Graph
    store: Store
    chance: random.Random
    shops: set[int] = field(default_factory=set)
    truth: dict[int, str] = field(default_factory=dict)
    due: set[int] = field(default_factory=set)
    revealed: set[int] = field(default_factory=set)
    shown: dict[int, set[str]] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    replaced: set[int] = field(default_factory=set)
    sibling: "Case | None" = None
    sibling_hurt: bool = False
    first_seen: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The project's name."""
        return self.settings.project

    @property
    def workspace(self) -> Workspace:
        """The project as the commands see it."""
        return Workspace(self.settings, self.settings.mapping(), self.graph, self.store)

    def grow(self, nodes: int, *, labelled: bool = False, created: datetime | None = None) -> None:
        """Let nodes arrive, each with a relationship to one that is there."""
        first = len(self.truth)
        self.add(list(range(first, first + nodes)), labelled=labelled, created=created)

    def add(
        self, keys: list[int], *, labelled: bool = False, created: datetime | None = None
    ) -> None:
        """Let nodes with these keys arrive."""
        new = []
        for key in keys:
            kind = self.chance.randrange(len(CLASSES))
            features = [self.chance.gauss(float(i == kind), 1.0) for i in range(WIDTH)]
            other = self.some_nodes(1)[0] if self.truth else None
            self.truth[key] = CLASSES[kind]
            if not labelled:
                self.due.add(key)
            known = CLASSES[kind] if labelled else None
            node = {"id": key, "features": features, "kind": known, "other": other}
            shop = {"shop": self._choose_shop(), "size": self.chance.gauss(float(kind), 1.0)}
            new.append(node | shop | {"created": created})
        self.graph.run(NODES.format(label=self.label), nodes=new)

    def _choose_shop(self) -> int:
        """A shop that is there, or a new one."""
        if self.shops and self.chance.random() > NEW_SHOP:
            return self.chance.choice(sorted(self.shops))
        shop = max(self.shops, default=0) + 1
        self.shops.add(shop)
        return shop

    def some_shops(self, count: int) -> list[int]:
        """Some shops that are there."""
        return self.chance.sample(sorted(self.shops), min(count, len(self.shops)))

    def some_nodes(self, count: int, *, due: bool = False) -> list[int]:
        """Some nodes that are there; of those that were due at some time, where asked for."""
        here = sorted((self.due if due else self.truth.keys()) - self.gone)
        return self.chance.sample(here, min(count, len(here)))

    def reveal(self, share: float = 0.3) -> None:
        """Let the classes of some evaluated nodes become known."""
        evaluated = {decode_key(key) for key in self.first_seen} - self.revealed - self.gone
        some = [key for key in sorted(evaluated) if self.chance.random() < share]
        self.revealed.update(some)
        nodes = [{"id": key, "kind": self.truth[key]} for key in some]
        self.graph.run(REVEAL.format(label=self.label), nodes=nodes)

    def change_classes(self, classes: dict[int, str | None]) -> None:
        """Give nodes other classes, or take them away.

        Nodes that were evaluated can calibrate a later version: an audit then shows the new class
        of such a node as that of its prediction, and keeps the last one that it saw of a withdrawn.
        """
        self.graph.run(
            f"UNWIND $rows AS row MATCH (n:{self.label} {{id: row[0]}}) SET n.kind = row[1]",
            rows=[[key, class_] for key, class_ in classes.items()],
        )
        for key in classes.keys() & self.revealed:
            self.shown.setdefault(key, set()).add(self.truth[key])
            self.truth[key] = classes[key] or self.truth[key]
            self.shown[key].add(self.truth[key])
            (self.withdrawn.discard if classes[key] else self.withdrawn.add)(key)

    def expected_classes(self, key: int) -> set[str | None]:
        """The classes of which the prediction of a node may show one; it shows the only one."""
        if key not in self.revealed:
            return {None}
        return {*self.shown[key]} if key in self.withdrawn else {self.truth[key]}

    def task(self, action: str, **more: Any) -> Task:
        """A worker's task for this project."""
        environment = {**self.environment, **more.pop("environment", {})}
        return Task(self.config, environment, action, **more)

    def time_passes(self) -> None:
        """End the lease of a worker that is dead, as waiting for its seconds would."""
        with self.store.transaction() as connection:
            connection.execute(
                update(tables.lease).where(tables.lease.c.project == self.name).values(expires_ns=0)
            )

    def recover(self, without: str = "") -> Outcome:
        """Run one whole scoring and audit, undisturbed.

        A lease of 1.5 s can be too short for a busy machine; then the next run goes on.
        """
        for _ in range(3):
            self.time_passes()
            ended = start(self.task("line", without=without)).outcome()
            if "took longer than the run's lease" not in ended.text:
                break
        if self.sibling is not None and self.sibling_hurt and ended.kind == "done":
            return self.sibling.recover(without)
        return ended


@contextmanager
def open_case(
    servers: Servers, form: Form, name: str, seed: int, folder: Path | None = None
) -> Iterator[Case]:
    """A trained project with a small graph, ready for faults."""
    home = folder or servers.folder / name
    home.mkdir(parents=True, exist_ok=True)
    config = home / "ringfence.toml"
    label = "F" + "".join(letter for letter in name if letter.isalnum())
    config.write_text(
        CONFIG.format(
            name=name,
            uri=servers.neo4j_uri,
            graph=form.toml.format(label=label),
            lease=LEASE_SECONDS,
        )
    )
    user, password = servers.neo4j_auth
    environment = {"RINGFENCE_NEO4J_USER": user, "RINGFENCE_NEO4J_PASSWORD": password}
    environment |= _audit(make_url(servers.sql) if servers.sql else None, home)
    settings = load(config, environment)
    graph = connect(servers.neo4j_uri, user, password)
    secret = environment.get("RINGFENCE_AUDIT_PASSWORD")
    store = open_store(settings.audit.url, secret)
    try:
        case = Case(form, label, settings, config, environment, graph, store, random.Random(seed))
        run_migrations(case.workspace)
        case.grow(60, labelled=True)
        case.grow(5)
        trained = start(case.task("train")).outcome()
        if trained.kind != "done":
            raise RuntimeError(f"the project could not be made: {trained.text}")
        yield case
    finally:
        store.close()
        graph.close()


def open_sibling(case: Case) -> Case:
    """Train another project on the same nodes, its configuration beside that of `case`."""
    config = case.config.with_name("sibling.toml")
    name = f"{case.name}-sibling"
    config.write_text(case.config.read_text().replace(f'"{case.name}"', f'"{name}"', 1))
    settings = load(config, case.environment)
    sibling = Case(
        case.form, case.label, settings, config, case.environment, case.graph, case.store,
        case.chance,
    )  # fmt: skip
    trained = start(sibling.task("train")).outcome()
    if trained.kind != "done":
        raise RuntimeError(f"the project could not be made: {trained.text}")
    return sibling


def _audit(sql: URL | None, home: Path) -> dict[str, str]:
    if sql is None:
        return {"RINGFENCE_AUDIT_URL": f"sqlite:///{home / 'audit.db'}"}
    plain = sql.set(password=None) if sql.password is None else sql._replace(password=None)
    address = {"RINGFENCE_AUDIT_URL": plain.render_as_string()}
    if sql.password is not None:
        address["RINGFENCE_AUDIT_PASSWORD"] = str(sql.password)
    return address
