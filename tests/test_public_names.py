"""What others may import stays importable, and the room's tables of contents stay sorted."""

import inspect

import pytest

import ringfence
from ringfence.models import conformal, guarantee, networks, scores

SIGNATURES = {
    scores.tps: ["probabilities"],
    scores.aps: ["probabilities", "u"],
    scores.raps: ["probabilities", "u", "penalty", "k_reg"],
    scores.daps: ["scores", "edge_index", "diffusion"],
    conformal.threshold: ["scores", "alpha", "weights", "test_weight"],
    conformal.p_values: ["calibration_scores", "scores", "weights", "test_weight"],
    conformal.prediction_sets: ["scores", "threshold"],
    guarantee.coverage_band: ["n", "m", "alpha", "level"],
}


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda f: f.__name__)
def test_a_public_function_keeps_its_arguments(function):
    assert list(inspect.signature(function).parameters) == SIGNATURES[function]


def test_coverage_p_value_takes_what_the_design_says():
    parameters = list(inspect.signature(guarantee.coverage_p_value).parameters)
    assert parameters[:4] == ["n", "m", "covered", "alpha"]


@pytest.mark.parametrize("name", ["GCN", "GAT", "APPNP", "SAGE", "MLP"])
def test_networks_take_features_classes_and_a_width(name):
    parameters = inspect.signature(getattr(networks, name)).parameters
    assert list(parameters)[:3] == ["in_features", "classes", "hidden"]
    assert parameters["hidden"].default == 64


def test_models_offers_every_public_name_of_its_folders():
    import ringfence.models as room

    for folder, names in room.PUBLIC.items():
        for name in names:
            assert getattr(room, name) is getattr(getattr(room, folder), name)
    assert room.__all__ == sorted(room.__all__)
    with pytest.raises(AttributeError):
        room.nothing  # noqa: B018


def test_a_project_opens_from_its_file_and_gives_frames(grown, tmp_path):
    project = ringfence.open
    assert callable(project)
    from ringfence.jobs.python_api.project import Project

    opened = Project(grown.workspace.settings)
    assert opened.migrate() == []
    assert opened.train().calibration > 0
    report = opened.score()
    opened.audit()
    sets = opened.sets(report.seq)
    assert len(sets) == report.evaluated
    assert list(sets.columns)[:5] == ["key", "classes", "size", "class", "covered"]
    assert (sets["size"] == sets["classes"].map(len)).all()
    assert set(opened.coverage()["slice"]) == {"run", "total"}
    assert opened.models()[["state", "runs", "shadow_nodes"]].to_numpy().tolist() == [
        ["active", 1, None]
    ]
    _is_the_graph(opened.to_pyg(), grown)


def _is_the_graph(data, grown):
    """PyG's view of the mirror has the nodes, features, classes and neighbours of the graph."""
    rows = grown.workspace.graph.read(
        "MATCH (n:Account) RETURN n.id AS id, n.features AS features, n.kind AS kind, "
        "COUNT { MATCH (n)-[:PAID]-(m) WHERE m <> n RETURN DISTINCT m } AS around"
    )
    assert sorted(data.keys_of_nodes) == sorted(row["id"] for row in rows)
    place = {key: i for i, key in enumerate(data.keys_of_nodes)}
    degrees = data.edge_index[0].bincount(minlength=data.num_nodes)
    for row in rows:
        at = place[row["id"]]
        assert data.x[at].tolist() == pytest.approx(list(row["features"]), abs=1e-6)
        assert int(degrees[at]) == row["around"]
        named = data.class_names[data.y[at]] if data.y[at] >= 0 else None
        assert named == row["kind"]
    masks = (data.train_mask, data.val_mask, data.calibration_mask)
    assert sum(int(mask.sum()) for mask in masks) == int((data.y >= 0).sum())
    assert not (masks[0] & masks[2]).any()
