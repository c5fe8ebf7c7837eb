"""Typed SAGE: PyG's own layers as oracle, any schema, and users' modules."""

import doctest
import sys
import warnings

import pytest
import torch

from ringfence.models import schema as schemas
from ringfence.models.networks import typed_sage
from ringfence.models.networks.custom import ModuleRefused
from ringfence.models.networks.typed_factory import build_typed, check_typed_module
from ringfence.models.schema import Relation, TypedSchema

SCHEMA = TypedSchema(
    ("Flight", "Airport", "layers.0 `x`"),
    (
        Relation(0, "TO", 1),
        Relation(0, "TO", 2, undirected=False),
        Relation(0, "NEXT", 0),
        Relation(1, "NEAR", 1, undirected=False),
        Relation(2, "AFTER", 0, cut=True),
    ),
)
WIDTHS = (5, 3, 1)


def random_graph(sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = {
        label: torch.randn(n, width, generator=generator)
        for label, n, width in zip(SCHEMA.labels, sizes, WIDTHS, strict=True)
    }
    n = dict(zip(SCHEMA.labels, sizes, strict=True))
    edges = {
        kind: torch.unique(
            torch.stack(
                [
                    torch.randint(n[kind[0]], (60,), generator=generator),
                    torch.randint(n[kind[2]], (60,), generator=generator),
                ]
            ),
            dim=1,
        )
        for kind in SCHEMA.edge_types
    }
    return x, edges


def test_channels_follow_direction_and_cuts():
    assert SCHEMA.edge_types == (
        ("Flight", "TO", "Airport"),
        ("Airport", "rev_TO", "Flight"),
        ("Flight", "TO", "layers.0 `x`"),
        ("Flight", "NEXT", "Flight"),
        ("Airport", "NEAR", "Airport"),
    )
    assert TypedSchema.from_json(SCHEMA.to_json()) == SCHEMA


@pytest.mark.filterwarnings("ignore:There exist node types")
def test_it_is_what_pyg_computes():
    """HeteroConv of SAGEConv with means, summed; its root weights add up to those of a label."""
    network = build_typed("typed_sage", SCHEMA, WIDTHS, 4, hidden=8, seed=3).eval()
    x, edges = random_graph((20, 6, 3))
    hetero_conv, sage_conv = pyg_layers()
    rows = x
    for number, layer in enumerate(network.layers):
        heard = {SCHEMA.edge_types[int(c)]: weights for c, weights in layer.channels.items()}
        convs = {}
        for kind, weights in heard.items():
            convs[kind] = sage_conv((-1, -1), weights.out_features, root_weight=False, bias=False)
            convs[kind](rows_of(rows, kind), edges[kind])  # its lazy weights
            convs[kind].lin_l.weight.data = weights.weight.data
        hetero = hetero_conv(convs, aggr="sum")
        out = hetero(rows, {kind: edges[kind] for kind in heard})
        roots = {SCHEMA.labels[int(t)]: root(rows[SCHEMA.labels[int(t)]])
                 for t, root in layer.roots.items()}  # fmt: skip
        rows = {label: root + out[label] if label in out else root for label, root in roots.items()}
        if number == 0:
            rows = {label: one.relu() for label, one in rows.items()}
    torch.testing.assert_close(network(x, edges), rows["Flight"], rtol=1e-5, atol=1e-5)


def pyg_layers():
    with warnings.catch_warnings():  # PyG's own, about torch.jit
        warnings.simplefilter("ignore")
        from torch_geometric.nn import HeteroConv, SAGEConv
    return HeteroConv, SAGEConv


def rows_of(rows, kind):
    return rows[kind[0]], rows[kind[2]]


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("degrees", [False, True])
def test_it_passes_the_checks_that_users_modules_pass(layers, degrees):
    network = build_typed("typed_sage", SCHEMA, WIDTHS, 4, layers=layers, degrees=degrees)
    check_typed_module(network, SCHEMA, WIDTHS, 4)


def test_context_reaches_as_many_hops_as_there_are_layers():
    """A flight hears another flight of its airport in two layers, and not in one."""
    for layers, hears in ((1, False), (2, True)):
        network = build_typed("typed_sage", SCHEMA, WIDTHS, 4, layers=layers, seed=1).eval()
        x, _ = random_graph((2, 1, 1))
        edges = {
            ("Flight", "TO", "Airport"): torch.tensor([[0, 1], [0, 0]]),
            ("Airport", "rev_TO", "Flight"): torch.tensor([[0, 0], [0, 1]]),
        }
        before = network(x, edges)[0]
        x["Flight"][1] += 10
        assert (network(x, edges)[0] != before).any() == hears


def test_degrees_tell_how_many_neighbours_there_are():
    x, _ = random_graph((2, 3, 1))
    x["Airport"][:] = 1.0  # all alike: the mean of one is the mean of two
    edges = {("Airport", "rev_TO", "Flight"): torch.tensor([[0, 1, 2], [0, 0, 1]])}
    for degrees, differs in ((False, False), (True, True)):
        network = build_typed("typed_sage", SCHEMA, WIDTHS, 4, layers=1, degrees=degrees).eval()
        x["Flight"][1] = x["Flight"][0]
        logits = network(x, edges)
        assert (not torch.allclose(logits[0], logits[1])) == differs


class Good(torch.nn.Module):
    """Columns of flights alone."""

    def __init__(self, metadata, in_features, classes):
        super().__init__()
        self.label = metadata[0][0]
        self.linear = torch.nn.Linear(in_features[self.label], classes)

    def forward(self, x_dict, edge_index_dict):
        return self.linear(x_dict[self.label])


class Numbered(Good):
    """Looks at a node's number."""

    def forward(self, x_dict, edge_index_dict):
        logits = super().forward(x_dict, edge_index_dict)
        return logits + torch.arange(len(logits)).unsqueeze(1)


class Narrow(Good):
    """Gives other rows than those of the classified label."""

    def forward(self, x_dict, edge_index_dict):
        return super().forward(x_dict, edge_index_dict)[1:]


class Noisy(Good):
    """Keeps its dropout on."""

    def forward(self, x_dict, edge_index_dict):
        return torch.nn.functional.dropout(super().forward(x_dict, edge_index_dict), 0.5, True)


@pytest.fixture
def own(monkeypatch):
    module = type(sys)("own_typed_modules")
    for one in (Good, Numbered, Narrow, Noisy):
        setattr(module, one.__name__, one)
    monkeypatch.setitem(sys.modules, "own_typed_modules", module)
    return lambda name: build_typed(f"own_typed_modules:{name}", SCHEMA, WIDTHS, 4)


def test_a_users_own_module_is_taken(own):
    assert isinstance(own("Good"), Good)


@pytest.mark.parametrize(
    ("name", "words"),
    [("Numbered", "permutation"), ("Narrow", "shape"), ("Noisy", "two results"), ("No", "nothing")],
)
def test_a_module_that_breaks_the_rules_is_refused(own, name, words):
    with pytest.raises(ModuleRefused, match=words):
        own(name)


def test_unknown_names_and_options_are_refused():
    with pytest.raises(ValueError, match="typed_sage"):
        build_typed("gcn", SCHEMA, WIDTHS, 4)
    with pytest.raises(ValueError, match="no option heads"):
        build_typed("typed_sage", SCHEMA, WIDTHS, 4, heads=3)
    with pytest.raises(ValueError, match="1 to 3"):
        build_typed("typed_sage", SCHEMA, WIDTHS, 4, layers=4)


@pytest.mark.parametrize("module", [schemas, typed_sage])
def test_the_examples_in_the_docstrings_are_true(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
