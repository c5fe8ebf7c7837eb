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
    TypedMapping,
)
from ringfence.connector.mirror.typed import RawBlock, create_typed, load_typed, save_typed
from ringfence.connector.neo4j.read.incremental import RelationshipBlock
from ringfence.jobs.project.model_files import SavedModel
from ringfence.jobs.project.network_inputs import Scaling
from ringfence.jobs.project.typed_inputs import fit_encoders, schema_of
from ringfence.jobs.scoring.inference import close_tables, inference_graph, outputs_at
from ringfence.models.networks.typed_factory import build_typed

pytestmark = pytest.mark.long
NODES, BLOCK, HUB = 1_000_000, 50_000, "@1:s:hub"
NODE = NodeMapping("Payment", "id", (ColumnMapping("code", "category"), ColumnMapping("size")))
TYPED = TypedMapping(
    (NODE, NodeMapping("Bank", "name")), (RelationMapping(0, "AT", 1),), "kind", "zoned"
)
MAPPING = GraphMapping("Payment", "id", (), False, "kind", "", "zoned", (), TYPED)
NOTHING = np.empty(0, np.float32)


def add(typed, first, count):
    """Payments with a code of their own, each at the one bank."""
    keys = [f"i:{number}" for number in range(first, first + count)]
    columns = [[f"code {key}" for key in keys], [float(first + at % 97) for at in range(count)]]
    typed.add_nodes(RawBlock(0, keys, columns, [None] * count, np.zeros(count, np.int64)))
    typed.base.add_block(RelationshipBlock(0, keys, [HUB] * count))
    typed.base.add_relationships([])


def outputs(folder, model, typed, wanted):
    typed.base.typed = typed
    graph = inference_graph(typed.base, MAPPING)
    found = outputs_at(folder, model, typed.base, MAPPING, graph, wanted)
    gathered = re.search(r"([\d,]+) gathered", found.sentence).group(1)
    return found.logits, int(gathered.replace(",", ""))


@pytest.fixture
def bank(tmp_path):
    """A mirror of a million payments at one bank, and a model with encoders fitted on a part."""
    typed = create_typed(tmp_path / "mirror", "bank", TYPED)
    typed.add_nodes(RawBlock(1, [HUB], [], [None], np.zeros(1, np.int64)))
    for first in range(0, NODES, BLOCK):
        add(typed, first, BLOCK)
    encoders = fit_encoders(typed, TYPED, typed.rows_of_label(0))
    schema = schema_of(TYPED)
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
    assert typed.base.edge_count == NODES
    (column,) = [one for one in model.manifest["typed"]["encoders"][0]["columns"]
                 if one["name"] == "code"]  # fmt: skip
    assert len(column["facts"]["keys"]) <= 64  # of a million different codes
    folder = tmp_path / "kept" / "t"
    wanted = typed.rows_of_label(0)[::10_000]
    first, gathered = outputs(folder, model, typed, wanted)
    assert np.isfinite(first).all()
    assert gathered >= NODES
    save_typed(typed, tmp_path / "mirror")
    close_tables(folder, model, typed.base)
    typed.base.typed = None
    del typed

    typed = load_typed(tmp_path / "mirror", "bank", TYPED)
    typed.base.advance()
    add(typed, NODES, 1_000)
    wanted = np.concatenate([wanted, typed.rows_of_label(0)[-1_000:]])
    kept, gathered = outputs(folder, model, typed, wanted)
    assert gathered < NODES / 100  # the hub's sum goes on with the new payments
    anew, _ = outputs(tmp_path / "anew" / "t", model, typed, wanted)
    np.testing.assert_array_equal(kept, anew)
    save_typed(typed, tmp_path / "mirror")
    close_tables(folder, model, typed.base)

    typed.base.advance()
    typed.remove_nodes(typed.rows_of_label(0)[500:501])  # the hub is gathered once more
    kept, gathered = outputs(folder, model, typed, wanted)
    assert gathered >= NODES
    anew, _ = outputs(tmp_path / "again" / "t", model, typed, wanted)
    np.testing.assert_array_equal(kept, anew)
    sums = sum(file.stat().st_size for file in folder.rglob("sums"))
    assert sums < 1_000_000  # the hub's sum is a row, not a list
