"""The demo's graph, many seeds: coverage of its accounts scatters as the law of section 5 says.

The mirror of the sample, its split, typed network and scores are those of a training; only the
databases are left out. Each seed draws graph, labels, split and weights anew.
"""

import numpy as np
import pytest
from scipy.stats import betabinom, binom, chi2, norm

from ringfence.connector.keys import encode_key
from ringfence.connector.mirror import RawBlock, RelationshipBlock, context_key, create_raw
from ringfence.connector.mirror.raw_table import encode_columns
from ringfence.jobs.config.load import load
from ringfence.jobs.project.holdout import configured_holdout
from ringfence.jobs.project.workspace import Workspace
from ringfence.jobs.samples.accounts import batches
from ringfence.jobs.samples.payments import PAYMENTS_TOML
from ringfence.jobs.training.chosen_fit import choose_scorer
from ringfence.jobs.training.fit import outputs_inside
from ringfence.jobs.training.split import draw_holdout, split_labelled
from ringfence.models.conformal.evaluate import NodeDegrees, NodeScores, Promise, evaluate
from ringfence.models.rules.node_ex import NODE_EX
from ringfence.models.sample.payments import payment_graph
from ringfence.models.scores import aps, softmax64

pytestmark = pytest.mark.statistics
NODES, ALPHA = 6_000, 0.1
SEEDS = range(200, 225)


def mirror(folder, mapping, seed):
    """The half of the sample that the demo trains on, and the accounts' true classes by key."""
    sample, rng = payment_graph(NODES, seed=seed), np.random.default_rng(seed)
    first, *_ = batches(sample.accounts, [NODES // 2, NODES // 2])
    accounts, labelled = first.nodes.tolist(), rng.random(NODES) < 0.5
    typed = create_raw(folder, "x", mapping.column_names, mapping.relation_columns)
    names = sample.accounts.classes
    here = np.isin(np.arange(NODES), first.nodes)
    paid = np.flatnonzero(here[sample.pays[0]])
    ends = [sample.accounts.edges[:, first.edges], sample.uses[:, here[sample.uses[0]]]]
    ends.append(sample.pays[:, paid])
    amounts = {
        0: [sample.transfers[at]["amount"] for at in first.edges.tolist()],
        2: [sample.payments[at]["amount"] for at in paid.tolist()],
    }
    used = np.unique(ends[1][1]).tolist()
    tables = [
        ([sample.columns[at] for at in accounts], accounts),
        ([sample.devices[at] for at in used], [sample.devices[at]["id"] for at in used]),
        (sample.merchants, [row["name"] for row in sample.merchants]),
    ]
    known = [names[sample.accounts.y[at]] if labelled[at] else None for at in accounts]
    for label, (rows, ids) in enumerate(tables):
        typed.add_nodes(
            [RawBlock(
                label, [context_key(label, encode_key(key)) for key in ids],
                [[row.get(name) for row in rows] for name in mapping.nodes[label].column_names],
                known if label == 0 else [None] * len(rows), np.zeros(len(rows), np.int64),
            )]
        )  # fmt: skip
    of = [
        lambda at: at,
        lambda at: sample.devices[at]["id"],
        lambda at: sample.merchants[at]["name"],
    ]
    for kind, pair in enumerate(ends):
        source = [context_key(0, encode_key(at)) for at in pair[0].tolist()]
        target = [context_key(kind, encode_key(of[kind](at))) for at in pair[1].tolist()]
        typed.add_block(
            RelationshipBlock(
                kind, source, target,
                numbers=np.arange(len(source)) if kind in amounts else None,
                texts=encode_columns([amounts[kind]], len(source)) if kind in amounts else (),
            )
        )  # fmt: skip
    typed.add_relationships([])
    truth = {context_key(0, encode_key(at)): names[sample.accounts.y[at]] for at in accounts}
    return typed, truth


def covered(folder, settings, seed):
    """How many unlabelled accounts were covered, how many there are, how many calibrated."""
    mapping = settings.graph.mapping()
    typed, truth = mirror(folder / f"seed-{seed}", mapping, seed)
    drawn = draw_holdout(typed, configured_holdout(settings))
    split = split_labelled(typed, settings.model, None, drawn.rows)
    workspace = Workspace(settings, settings.mapping(), None, None)
    fitted = choose_scorer(workspace, typed, split, None, False)[0].fitted
    rows = typed.rows_of_label(0)
    logits = outputs_inside(split, fitted, rows).logits
    keys = typed.keys.take(rows.tolist())
    y = np.array([split.classes.index(truth[key]) for key in keys])
    scores = np.asarray(aps(softmax64(logits), np.random.default_rng(seed + 99).random(len(rows))))
    calibration = np.flatnonzero(np.isin(rows, split.calibration))
    due = np.flatnonzero(typed.classes[rows] < 0)
    own = scores[calibration, y[calibration]]
    ones = [np.ones(len(some), np.int64) for some in (calibration, due)]
    sets = evaluate(
        NodeScores(own, scores[due], own), NodeDegrees(*ones, np.array([0, len(rows)])),
        Promise((ALPHA,), NODE_EX),
    ).sets[0]  # fmt: skip
    return int(sets[np.arange(len(due)), y[due]].sum()), len(due), len(calibration)


def spread(places):
    """Two-sided p-value of the scatter of places within a law: uniform if the law is right."""
    places = np.clip(places, 1e-9, 1 - 1e-9)
    total = float((norm.ppf(places) ** 2).sum())
    below = float(chi2.cdf(total, len(places)))
    return 2 * min(below, 1 - below)


def test_coverage_of_the_demo_scatters_as_the_law_says(tmp_path):
    (tmp_path / "ringfence.toml").write_text(PAYMENTS_TOML)
    settings = load(tmp_path / "ringfence.toml")
    found = [covered(tmp_path, settings, seed) for seed in SEEDS]
    by_law, by_chance_alone = [], []
    for hits, due, n in found:
        rank = int(ALPHA * (n + 1))
        by_law.append(betabinom.cdf(hits - 0.5, due, n + 1 - rank, rank))
        by_chance_alone.append(binom.cdf(hits - 0.5, due, 1 - ALPHA))
    mean = np.mean([hits / due for hits, due, _ in found])
    error = np.std([hits / due for hits, due, _ in found]) / len(found) ** 0.5
    assert abs(mean - (1 - ALPHA)) < 4 * error
    assert spread(np.array(by_law)) > 0.01
    assert spread(np.array(by_chance_alone)) < 0.001  # a law that forgets the calibration draw
