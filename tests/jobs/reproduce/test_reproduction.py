"""`ringfence reproduce`, end to end on a small dataset, and the parts of it by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from ringfence.connector.errors import RingfenceError
from ringfence.jobs.cli.app import app
from ringfence.jobs.reproduce.cache import Cache
from ringfence.jobs.reproduce.datasets import DatasetMissing, load, read_folder, write_npz
from ringfence.jobs.reproduce.findings import findings
from ringfence.jobs.reproduce.finished import full_logits
from ringfence.jobs.reproduce.protocol import edge_run, stale_coverage
from ringfence.jobs.reproduce.published import PUBLISHED, STATISTICS, TABLE_1
from ringfence.jobs.reproduce.scores import score_cells, scores_record
from ringfence.jobs.reproduce.sequence_runs import Plan, Results, run_datasets
from ringfence.jobs.reproduce.splits import draw_split, trained_model
from ringfence.jobs.reproduce.table import chance, row_of
from ringfence.models.conformal.sets import threshold
from ringfence.models.conformal.weights import edge_weights
from ringfence.models.networks import GCN
from ringfence.models.networks.edges import canonical_edges
from ringfence.models.sample.accounts import sample_graph
from ringfence.models.scores import SCORES, aps, softmax64

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a generated dataset called `tiny`."""
    made = tmp_path_factory.mktemp("data")
    graph = sample_graph(1_000, seed=3)
    write_npz(made / "tiny.npz", graph.features > 0, graph.y, graph.edges)
    return made


@pytest.fixture(scope="module")
def tiny(folder):
    data = read_folder("tiny", folder)
    return data, trained_model(data, 0, 7, Cache(folder / "cache"))


def _reproduce(*arguments):
    found = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
    if found.exception and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


@pytest.mark.long
def test_a_small_dataset_from_nothing_to_the_table(folder, tmp_path):
    """CiteSeer where the shared data is there, the generated dataset elsewhere."""
    where, name = (SHARED, "citeseer") if (SHARED / "citeseer.npz").exists() else (folder, "tiny")
    options = ("--datasets", name, "--data", where, "--sequences", 12, "--edge-sequences", 3,
               "--no-figures", "--output", tmp_path, "--json")  # fmt: skip
    first = json.loads(_reproduce(*options).stdout)
    row = first["rows"][0]
    assert first["inside"] == {name: True}
    assert row["splits"] == 2
    assert row["cells"]["node arrival node"]["sequences"] == 12
    assert row["accuracy"] > 0.5
    assert row["cells"]["node last naive"]["signed"] > row["cells"]["node last node"]["signed"]
    assert {"README.md", "table.csv", "table.json", "index.html"} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert row["title"] in (tmp_path / "README.md").read_text()

    cached = {path: path.stat().st_mtime_ns for path in tmp_path.glob("cache/**/*.*")}
    assert len(cached) == 12 + 3 + 2 + 2 + 2  # sequences, networks, accuracies, scores
    assert row["scores"]["auto DAPS"]["size"] < row["scores"]["auto APS"]["size"]
    page = (tmp_path / "README.md").read_text()
    assert "Our rule and other scores beside the paper's" in page
    assert "Flickr and Reddit2." in page
    again = json.loads(_reproduce(*options).stdout)
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("cache/**/*.*")} == cached


@pytest.mark.long
def test_the_same_seed_gives_the_same_numbers_and_another_one_others(folder, tmp_path):
    def table(seed, where):
        return _reproduce(
            "--datasets", "tiny", "--data", folder, "--sequences", 2, "--edge-sequences", 1,
            "--no-figures", "--output", where, "--seed", seed, "--no-resume", "--json",
        )  # fmt: skip

    rows = [json.loads(table(seed, tmp_path / "out").stdout)["rows"] for seed in (1, 1, 2)]
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]


def test_what_is_missing_is_named(folder, tmp_path):
    with pytest.raises(DatasetMissing, match=r"no .*pubmed\.npz; the folder holds tiny"):
        load("pubmed", folder, tmp_path)
    with pytest.raises(RingfenceError, match="no dataset is called coral"):
        _reproduce("--datasets", "coral", "--data", folder, "--output", tmp_path)
    np.savez(tmp_path / "half.npz", edges=np.zeros((2, 0)), y=np.zeros(1))
    with pytest.raises(DatasetMissing, match="has no x_indptr, x_indices, x_data, x_shape"):
        read_folder("half", tmp_path)


def test_a_dataset_that_shares_only_its_name_with_the_papers_is_refused(folder, tmp_path):
    (tmp_path / "citeseer.npz").write_bytes((folder / "tiny.npz").read_bytes())
    with pytest.raises(DatasetMissing, match="the paper's") as refused:
        load("citeseer", tmp_path, tmp_path)
    assert "4230" in str(refused.value)
    assert "1000" in str(refused.value)


def test_attributes_of_the_large_datasets_keep_their_values(folder):
    with np.load(folder / "tiny.npz") as stored:
        arrays = dict(stored)
    arrays["x_data"] = np.full(len(arrays["x_indices"]), 0.25, np.float32)
    np.savez(folder / "flickr.npz", **arrays)
    np.savez(folder / "weighted.npz", **arrays)
    assert set(read_folder("flickr", folder).x.data) == {0.25}
    assert set(read_folder("weighted", folder).x.data) == {1.0}
    (folder / "flickr.npz").unlink()
    (folder / "weighted.npz").unlink()


@pytest.mark.long
def test_what_an_interrupted_run_left_is_shown_without_running_more(folder, tmp_path):
    options = ("--datasets", "tiny", "--data", folder, "--no-figures", "--output", tmp_path,
               "--json", "--edge-sequences", 1)  # fmt: skip
    _reproduce(*options, "--sequences", 2)
    found = json.loads(_reproduce(*options, "--sequences", 50, "--cached-only").stdout)
    assert found["rows"][0]["cells"]["node arrival node"]["sequences"] == 2
    assert "--cached-only" in found["command_line"]


def test_large_datasets_are_skipped_with_words_when_absent(folder, tmp_path):
    found = _reproduce("--datasets", "large", "--data", folder, "--output", tmp_path)
    assert "flickr skipped: no " in " ".join(found.stdout.split())
    assert "reddit2 skipped: no " in " ".join(found.stdout.split())
    small = Plan(("pubmed",), folder, 1, 0, 7, Cache(tmp_path))
    with pytest.raises(DatasetMissing):  # control: one of the seven is never skipped
        run_datasets(small, lambda *_: None)


def test_a_split_has_as_many_train_as_validation_nodes_of_each_class():
    y = np.repeat([0, 1, 2], [100, 50, 12])
    train_nodes, validation = draw_split(y, 20, seed=1)
    assert np.bincount(y[train_nodes]).tolist() == [20, 20, 6]
    assert np.bincount(y[validation]).tolist() == [20, 20, 6]
    assert not set(train_nodes) & set(validation)
    assert draw_split(y, 20, seed=2)[0].tolist() != train_nodes.tolist()


def _forward(data, model, edges):
    network = GCN(data.x.shape[1], data.classes).double().eval()
    network.load_state_dict({name: value.double() for name, value in model.state.items()})
    x = torch.from_numpy(data.x.toarray()).double()
    with torch.no_grad():
        return network(x, canonical_edges(torch.from_numpy(edges), data.nodes)).numpy()


@pytest.mark.slow
def test_the_logits_of_the_finished_graph_are_a_full_forward(tiny):
    data, model = tiny
    np.testing.assert_allclose(
        full_logits(data, model), _forward(data, model, data.edges), atol=1e-9
    )


def test_stale_coverage_by_hand(tiny):
    """Scores of the full graph at every step; degrees of the step; naive's own threshold."""
    data, model = tiny
    run = edge_run(data, model, seed=5)
    sequence, nodes, known = run.sequence, run.arriving, run.sequence.calibration

    def true_scores(edges):
        scores = aps(softmax64(_forward(data, model, edges)), run.score.u)
        return np.asarray(scores)[np.arange(data.nodes), data.y]

    full = true_scores(data.edges)
    start = true_scores(sequence.edges[:, sequence.edge_step == 0])
    expected = {"edge": 0, "node": 0, "naive": 0}
    for node in nodes:
        degrees = sequence.degrees(int(sequence.node_step[node]))[known]
        expected["edge"] += full[node] >= threshold(full[known], 0.1, edge_weights(degrees)).item()
        expected["node"] += full[node] >= threshold(full[known], 0.1).item()
        expected["naive"] += full[node] >= threshold(start[known], 0.1).item()
    assert stale_coverage(data, model, run, 0.1) == expected


def test_chance_is_the_beta_binomial_law_of_a_mean():
    one, hundred = (chance(140, 2_500, 0.1, sequences=k) for k in (1, 100))
    assert one.expected == pytest.approx(100 * (1 - 14 / 141))
    spread = np.sqrt(0.9 * 0.1 / 142) * 100
    assert one.deviation == pytest.approx(spread * np.sqrt(2 / np.pi), rel=0.1)
    assert (hundred.high - hundred.low) / (one.high - one.low) == pytest.approx(0.1, rel=0.1)
    assert hundred.low < hundred.expected - 90 < hundred.high


def test_a_cell_is_the_grand_mean_and_a_row_knows_whether_it_is_chance():
    def record(covered):
        share = {"covered": covered, "size": 2.0, "hit": 0.5, "empty": 0}
        rules = dict.fromkeys(("node", "naive"), share)
        return {"m": 1000, "n": 99, "arrival": rules, "own": rules, "last": rules}

    def row(*covered):
        return row_of(Results("x", "X", (0.8, 0.9), tuple(map(record, covered)), ()))

    good = row(*[890, 920] * 10)
    assert good.cells["node arrival node"].first == pytest.approx(0.5)
    assert good.cells["node arrival node"].signed == pytest.approx(0.5)
    assert good.cells["node arrival node"].groups == pytest.approx((0.5, 0.5))
    assert good.inside
    assert not row(*[940, 970] * 10).inside  # control
    assert "means of 20 sequences: 1 of 1 datasets lie within" in findings([good])[0]
    assert "0 of 1 datasets lie outside" in findings([good])[1]
    assert "Outside: X." in findings([row(*[940, 970] * 10)])[0]
    assert "Amazon-Photo, Flickr and Reddit2." in findings([good])[-1]


def test_our_rule_and_other_scores_are_judged_on_the_same_nodes(tiny):
    data, model = tiny
    record = scores_record(data, model, seed=1)
    cells = score_cells([record])
    assert set(cells) == {f"auto {score}" for score in SCORES} | {
        "NodeEx APS", "NodeEx vote", "auto auto",
    }  # fmt: skip
    assert all(0.8 < cell.covered < 1.0 for cell in cells.values())
    assert all(cell.worst_class <= cell.covered for cell in cells.values())
    assert cells["auto auto"] == cells[f"auto {record['chosen']}"]
    assert scores_record(data, model, seed=1) == record
    assert score_cells([]) == {}


def test_the_papers_numbers_are_complete():
    assert set(PUBLISHED) == set(TABLE_1) <= set(STATISTICS)
    assert PUBLISHED["citeseer"].node_nodeex == 0.039
