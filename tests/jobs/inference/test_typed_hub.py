"""A hub with a million relationships, and a category of a million values, in the typed mirror."""

import json
import re

import numpy as np
import pytest

from ringfence.connector.mapping import (
    ColumnMapping,
    GraphMapping,
    NodeMapping,
    RelationMapping,
)
from ringfence.connector.mirror import (
    RawBlock,
    RelationshipBlock,
    create_raw,
    load,
    save,
)
from ringfence.jobs.inference import close_tables, inference_graph, outputs_at
from ringfence.jobs.project.columns.column_encoders import schema_of
from ringfence.jobs.project.columns.fit import fit_encoders
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import Scaling
from ringfence.models.networks.typed_factory import build_typed

pytestmark = pytest.mark.long
NODES, BLOCK, HUB = 1_000_000, 50_000, "@1:s:hub"
NODE = NodeMapping("Payment", "id", (ColumnMapping("code", "category"), ColumnMapping("size")))
MAPPING = GraphMapping(
    (NODE, NodeMapping("Bank", "name")), (RelationMapping(0, "AT", 1),), "kind", "zoned"
)
NOTHING = np.empty(0, np.float32)


def add(typed, first, count):
    """Payments with a code of their own, each at the one bank."""
    keys = [f"i:{number}" for number in range(first, first + count)]
    columns = [[f"code {key}" for key in keys], [float(first + at % 97) for at in range(count)]]
    typed.add_nodes([RawBlock(0, keys, columns, [None] * count, np.zeros(count, np.int64))])
    typed.add_block(RelationshipBlock(0, keys, [HUB] * count))
    typed.add_relationships([])


def outputs(folder, model, typed, wanted):
    graph = inference_graph(typed, MAPPING)
    found = outputs_at(folder, model, typed, MAPPING, graph, wanted)
    gathered = re.search(r"([\d,]+) gathered", found.sentence).group(1)
    return found.logits, int(gathered.replace(",", ""))


@pytest.fixture
def bank(tmp_path):
    """A mirror of a million payments at one bank, and a model with encoders fitted on a part."""
    typed = create_raw(tmp_path / "mirror", "bank", MAPPING.column_names)
    typed.add_nodes([RawBlock(1, [HUB], [], [None], np.zeros(1, np.int64))])
    for first in range(0, NODES, BLOCK):
        add(typed, first, BLOCK)
    encoders = fit_encoders(typed, MAPPING, typed.rows_of_label(0))
    schema = schema_of(MAPPING)
    network = build_typed("typed_sage", schema, encoders.widths, 2, hidden=4, layers=2)
    weights = {name: one.numpy() for name, one in network.state_dict().items()}
    facts = json.loads(json.dumps({"schema": schema.to_json(), **encoders.facts()}))
    options = {"hidden": 4, "layers": 2}
    manifest = {"network": "typed_sage", "classes": ["a", "b"], "options": options, "typed": facts}
    return typed, SavedModel(
        "v", {**weights, **encoders.arrays()}, Scaling(NOTHING, NOTHING), NOTHING, manifest
    )


def test_a_run_at_a_hub_of_a_million_costs_what_is_new(bank, tmp_path):
    typed, model = bank
    assert typed.edge_count == NODES
    (column,) = [one for one in model.manifest["typed"]["encoders"][0]["columns"]
                 if one["name"] == "code"]  # fmt: skip
    assert len(column["facts"]["keys"]) <= 64  # of a million different codes
    folder = tmp_path / "kept" / "t"
    wanted = typed.rows_of_label(0)[::10_000]
    first, gathered = outputs(folder, model, typed, wanted)
    assert np.isfinite(first).all()
    assert gathered >= NODES
    save(typed, tmp_path / "mirror")
    close_tables(folder, model, typed)
    del typed

    typed = load(tmp_path / "mirror", "bank")
    typed.advance()
    add(typed, NODES, 1_000)
    wanted = np.concatenate([wanted, typed.rows_of_label(0)[-1_000:]])
    kept, gathered = outputs(folder, model, typed, wanted)
    assert gathered < NODES / 100  # the hub's sum goes on with the new payments
    anew, _ = outputs(tmp_path / "anew" / "t", model, typed, wanted)
    np.testing.assert_array_equal(kept, anew)
    save(typed, tmp_path / "mirror")
    close_tables(folder, model, typed)

    typed.advance()
    typed.remove_nodes(typed.rows_of_label(0)[500:501])  # the hub is gathered once more
    kept, gathered = outputs(folder, model, typed, wanted)
    assert gathered >= NODES
    anew, _ = outputs(tmp_path / "again" / "t", model, typed, wanted)
    np.testing.assert_array_equal(kept, anew)
    files = [*folder.rglob("channel.*"), *folder.rglob("label.*")]
    sizes = sum(file.stat().st_size for file in files)
    assert 0 < sizes < 1_000_000  # the hub's sum is a row, not a list
