"""Graphs with known answers, from `init` to `score` without editing: is what ringfence says right?

    python -m benchmarks.planted [--quick] [--accounts 1200]

Each graph has accounts with balance, turnover and a day, shops that they visit and transfers with
amounts between them. What tells whether an account is a mule is planted: the account's own columns,
the shop, the amounts of its transfers, or whom it pays; in two of them a relationship gives the
class away beside that, in the last a tenth of the accounts is known and all have a creation time.
`init`, `doctor`, `migrate`, `train` and `score` run as they stand. It is asked whether `init` cuts
what gives the class away and nothing else, what `train` says that the relationships bring, and how
well the accounts of unknown kind are told apart: the area under the curve by the p-values of both
classes, with a 95 % interval. Whether `auto` chose well is asked of these accounts too, whose kind
it never saw: each scorer is fitted again as it was for the choice and evaluated there on the graph
as it is, and the chosen one may not lose to another by more than two standard errors.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import PUBLISHED_KEY, keep, show
from ringfence.connector.mirror import UNKNOWN, record_keys_at
from ringfence.connector.neo4j import embedded
from ringfence.connector.neo4j.driver import Graph, connect
from ringfence.connector.neo4j.write.bulk import delete_all_nodes
from ringfence.connector.store.models import find_active_manifest, members
from ringfence.jobs.config.load import load
from ringfence.jobs.inference import inference_graph, outputs_at
from ringfence.jobs.lifecycle.graph_benefit import NUMBERS, OWN_COLUMNS, PERMUTED, GraphBenefit
from ringfence.jobs.project.graph_read import load_graph
from ringfence.jobs.project.model_files import SCORER_CHOICE_KEY, SavedModel, load_model
from ringfence.jobs.project.workspace import Workspace, open_workspace
from ringfence.jobs.python_api.project import Project
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.doctor import run_doctor
from ringfence.jobs.setup.init import run_init
from ringfence.jobs.setup.migrate import run_migrations
from ringfence.jobs.training.chosen_fit import half_settings, with_network
from ringfence.jobs.training.fit import fit_network
from ringfence.jobs.training.fitted_trees import blend
from ringfence.jobs.training.repeat import recorded_split
from ringfence.jobs.training.train import run_training
from ringfence.models.networks.registry import BLEND, TREES, TYPED_SAGE
from ringfence.models.scores import softmax64

Row = dict[str, Any]
Losses = NDArray[np.float64]

SHOPS, MULES, LABELLED, TRANSFERS = 20, 0.4, 0.8, 4
NOISE = 0.1  # share of the accounts that are at the wrong kind of shop
NOTHING, HELP, HELD = ("nothing", "harm"), ("help",), ("numbers", "help")


@dataclass(frozen=True, slots=True)
class Planted:
    """A graph and its known answer.

    own: how far balance and turnover of mules are from others', in standard deviations (of one
    column alone `init` would ask whether it is the class). amounts: the same of the logarithm of
    what they send. shops: whether the shop tells. alike: share of the transfers that surely go to
    an account of the same kind. leak: the relationship that gives the class away, which `init` has
    to cut. verdicts: what `train` may say of the graph. labelled: share of the accounts whose kind
    is known. created: whether accounts have a creation time. times: how many times as many.
    """

    name: str
    verdicts: tuple[str, ...]
    own: float = 0.0
    amounts: float = 0.0
    shops: bool = False
    alike: float = 0.0
    leak: str = ""
    labelled: float = LABELLED
    created: bool = False
    times: int = 1


WORLDS = (
    Planted("the graph is irrelevant", NOTHING, own=1.2),
    Planted("the graph decides", HELP, shops=True),
    Planted("amounts of transfers decide", HELD, amounts=1.5),
    Planted("the class stands at a neighbour", NOTHING, own=1.2, leak="IN"),
    Planted("a relationship comes with the class", NOTHING, own=1.2, leak="REPORTED_IN"),
    Planted(
        "few are known, and accounts pay their kind",
        (*NOTHING[:1], *HELD), own=0.8, alike=0.8, labelled=0.1, created=True, times=3,
    ),
)  # fmt: skip
ACCOUNTS = """
UNWIND $rows AS row
CREATE (a:Account {id: row.id, balance: row.balance, turnover: row.turnover, kind: row.kind,
  opened: date('2020-01-01') + duration({days: row.id})})
"""
CREATED = """
MATCH (a:Account) SET a.created_at = datetime() - duration({minutes: $count - a.id})
"""
SHOP = "UNWIND range(0, $count - 1) AS i CREATE (:Shop {id: 's' + i, size: i + 0.5})"
VISITS = """
UNWIND $rows AS row MATCH (a:Account {id: row.id}), (s:Shop {id: 's' + row.shop})
CREATE (a)-[:VISITS]->(s)
"""
TRANSFER = """
UNWIND $rows AS row MATCH (a:Account {id: row.id}), (b:Account {id: row.to})
CREATE (a)-[:SENT {amount: row.amount}]->(b)
"""
STATES = """
MATCH (a:Account) MERGE (s:State {code: coalesce(a.kind, 'open')}) CREATE (a)-[:IN]->(s)
"""
REPORTS = """
MATCH (a:Account) WHERE a.kind IS NOT NULL
CREATE (a)-[:REPORTED_IN]->(:Report {id: a.id, pages: a.id % 7})
"""


def write_world(graph: Graph, world: Planted, accounts: int, seed: int) -> dict[int, str]:
    """Write a graph into an empty database; return the true kind of each account."""
    rng = np.random.default_rng((seed, 30))
    mule = rng.random(accounts) < MULES
    known = rng.random(accounts) < world.labelled
    kinds = np.where(mule, "mule", "plain").tolist()
    own = rng.normal(world.own * mule, 1.0, (2, accounts)).round(4).tolist()
    graph.run("CREATE CONSTRAINT IF NOT EXISTS FOR (a:Account) REQUIRE a.id IS UNIQUE")
    graph.run(ACCOUNTS, rows=[
        {"id": at, "balance": balance, "turnover": turnover, "kind": kind if here else None}
        for at, (balance, turnover, kind, here) in enumerate(zip(*own, kinds, known, strict=True))
    ])  # fmt: skip
    graph.run(SHOP, count=SHOPS)
    large = mule ^ (rng.random(accounts) < NOISE)
    shop = rng.integers(0, SHOPS // 2, accounts) + (SHOPS // 2) * large
    if not world.shops:
        shop = rng.integers(0, SHOPS, accounts)
    graph.run(VISITS, rows=[{"id": at, "shop": int(shop[at])} for at in range(accounts)])
    source = np.repeat(np.arange(accounts), TRANSFERS)
    amounts = np.exp(rng.normal(4 + world.amounts * mule[source], 1.0)).round(2)
    ends = rng.integers(0, accounts, len(source))
    if world.alike:
        same = [rng.choice(np.flatnonzero(mule == kind), len(source)) for kind in (False, True)]
        ends = np.where(
            rng.random(len(source)) < world.alike, np.where(mule[source], *same[::-1]), ends
        )
    graph.run(TRANSFER, rows=[
        {"id": a, "to": b, "amount": amount}
        for a, b, amount in zip(source.tolist(), ends.tolist(), amounts.tolist(), strict=True)
    ])  # fmt: skip
    if world.created:
        graph.run(CREATED, count=accounts)
    if world.leak:
        graph.run(STATES if world.leak == "IN" else REPORTS)
    return dict(enumerate(kinds))


def try_world(
    graph: Graph, user: str, world: Planted, folder: Path, accounts: int, seed: int = 0
) -> Row:
    """Run the product on a graph and say whether what it says is right.

    RINGFENCE_NEO4J_PASSWORD is set; the database is empty.
    """
    accounts *= world.times
    kinds = write_world(graph, world, accounts, seed)
    path = folder / "ringfence.toml"
    proposal = run_init(path, graph.uri, user, None, "planted", force=True)
    errors = [finding.text for finding in run_doctor(path) if finding.level == "error"]
    with open_workspace(load(path)) as workspace:
        run_migrations(workspace)
        trained = run_training(workspace)
        run_scoring(workspace)
        manifest = json.loads(find_active_manifest(workspace.store, workspace.project) or "{}")
        unseen = losses_on_unknown(workspace, manifest, kinds, folder)
    benefit = GraphBenefit.from_manifest(manifest)
    if benefit is None:
        raise ValueError("train has checked no graph")
    choice = manifest[SCORER_CHOICE_KEY]
    losses = {each["name"]: each["log_loss"] for each in choice["tried"]}
    sets = Project(load(path)).sets()
    area, low, high = area_of(sets, kinds)
    cut = sorted(relation.type for relation in proposal.relations if relation.after_evaluation)
    own = benefit.beside(OWN_COLUMNS)
    right = {
        "doctor": not errors,
        "leaks": cut == ([world.leak] if world.leak else []),
        "auto": is_well_chosen(choice["chosen"], unseen),
        "graph check": benefit.verdict in world.verdicts and not benefit.is_suspicious,
        "told apart": low > 0.5,
    }
    return {
        "world": world.name, "accounts": accounts, "cut": ", ".join(cut) or "nothing",
        "took": choice["chosen"], **{f"{name}_loss": loss for name, loss in losses.items()},
        **{f"{name}_unknown": float(each.mean()) for name, each in unseen.items()},
        "verdict": benefit.verdict, "over_own": own.gain, "over_own_low": own.low,
        "over_own_high": own.high, "over_numbers": benefit.beside(NUMBERS).gain,
        "over_permuted": benefit.beside(PERMUTED).gain, "area": area, "area_low": low,
        "area_high": high, "covered": float(covered(sets, kinds)),
        "right": "yes" if all(right.values()) else "no",
        "wrong": ", ".join(name for name, fine in right.items() if not fine) or None,
        "said": list(trained.graph),
    }  # fmt: skip


def losses_on_unknown(
    workspace: Workspace, manifest: dict[str, Any], kinds: dict[int, str], folder: Path
) -> dict[str, Losses]:
    """The log loss of each account of unknown kind [n] by scorer, on the graph as it is."""
    mirror = load_graph(workspace)
    assert mirror is not None
    settings = workspace.settings.model
    known = members(workspace.store, workspace.project, manifest["version"])
    saved = load_model(workspace.models, json.dumps(manifest))
    split, _ = recorded_split(mirror, saved, known)
    fits = {
        name: fit_network(
            with_network(workspace, half_settings(settings, name)), mirror, split, None,
            manifest["recipe"]["class_weights"] is not None,
        )
        for name in (TYPED_SAGE, TREES)
    }  # fmt: skip
    fits[BLEND] = blend(fits[TYPED_SAGE], fits[TREES], split)
    rows = mirror.rows_of_label(0)
    rows = rows[np.asarray(mirror.classes)[rows] == UNKNOWN]
    keys = [int(key.partition(":")[2]) for key in record_keys_at(mirror, rows)]
    truth = np.array([split.classes.index(kinds[key]) for key in keys])
    graph, losses = inference_graph(mirror, workspace.mapping), {}
    for name, fitted in fits.items():
        facts = {**fitted.manifest_facts(), "classes": list(split.classes)}
        model = SavedModel(name, fitted.weights, fitted.inputs.scaling, np.empty(0), facts)
        passed = outputs_at(folder / name, model, mirror, workspace.mapping, graph, rows)
        of_truth = softmax64(passed.logits)[np.arange(len(rows)), truth]
        losses[name] = -np.log(np.maximum(of_truth, 1e-12))
    return losses


def is_well_chosen(chosen: str, losses: dict[str, Losses]) -> bool:
    """Whether no other scorer does better than the chosen one, node by node, beyond chance."""
    behind = [losses[chosen] - other for name, other in losses.items() if name != chosen]
    return all(each.mean() <= 2 * each.std(ddof=1) / np.sqrt(len(each)) for each in behind)


def area_of(sets: Any, kinds: dict[int, str]) -> tuple[float, float, float]:
    """The area under the curve of a set's p-values, with Hanley and McNeil's 95 % interval."""
    mule = np.array([kinds[int(key)] == "mule" for key in sets["key"]])
    score = (sets["p mule"].fillna(0) - sets["p plain"].fillna(0)).to_numpy()
    above = score[mule][:, None] - score[~mule][None, :]
    area = float((above > 0).mean() + (above == 0).mean() / 2)
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    m, n = int(mule.sum()), int((~mule).sum())
    variance = area * (1 - area) + (m - 1) * (one - area**2) + (n - 1) * (two - area**2)
    half = 1.96 * float(np.sqrt(variance / (m * n)))
    return area, area - half, area + half


def covered(sets: Any, kinds: dict[int, str]) -> float:
    """Share of the accounts of unknown kind whose set holds it."""
    held = [
        kinds[int(key)] in classes
        for key, classes in zip(sets["key"], sets["classes"], strict=True)
    ]
    return float(np.mean(held))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accounts", type=int, default=1_200)
    parser.add_argument("--world", choices=[world.name for world in WORLDS], help="this one alone")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    accounts = 600 if given.quick else given.accounts
    rows = []
    with tempfile.TemporaryDirectory(prefix="ringfence-planted-") as place:
        server = embedded.start(Path(place) / "neo4j")
        os.environ |= PUBLISHED_KEY | {"RINGFENCE_NEO4J_PASSWORD": server.password}
        try:
            for number, world in enumerate(WORLDS):
                if given.world not in (None, world.name):
                    continue
                folder = Path(place) / str(number)
                folder.mkdir()
                with closing(connect(server.uri, server.user, server.password)) as graph:
                    delete_all_nodes(graph)
                    rows.append(try_world(graph, server.user, world, folder, accounts))
                show({name: value for name, value in rows[-1].items() if name != "said"})
        finally:
            embedded.stop(Path(place) / "neo4j")
    keep("planted", rows, given.quick or given.world is not None)
    if any(row["wrong"] for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
