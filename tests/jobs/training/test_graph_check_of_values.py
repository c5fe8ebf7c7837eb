"""The fits with less of the graph, where relationships have columns: their values go with them."""

import numpy as np
import pytest

from ringfence.jobs.lifecycle.graph_benefit import NUMBERS, OWN_COLUMNS, PERMUTED
from ringfence.jobs.training.graph_check import change_inputs
from ringfence.jobs.training.several_labels import SeveralLabels
from ringfence.jobs.training.split import Split
from ringfence.models.trees.columns import tree_columns
from tests.jobs.inference.test_relation_columns import bring, empty, transfers
from tests.jobs.training.test_split import settings


@pytest.fixture
def fitted(tmp_path):
    """Inputs of accounts with transfers, parallel ones and loops among them, and their split."""
    related = transfers(x="number", y="category")
    typed = empty(tmp_path / "typed", related)
    bring(typed, related, related.step(60, 120, 0, 0, known=True))
    rows = typed.rows_of_label(0)
    classes = np.asarray(typed.classes)[: typed.size]
    split = Split(("a", "b"), classes, rows[:40], rows[40:50], rows[50:])
    model = settings(tmp_path, network="typed_sage", degrees=True).model
    return SeveralLabels(typed, related.mapping).fit_inputs(model, split.train), split


def changed(fitted, name):
    """What a fit of this name reads."""
    inputs, split = fitted
    return change_inputs(name, inputs, split, inputs.mirror.size)


def seen(fitted):
    _, split = fitted
    return np.concatenate([split.train, split.validation])


def means(inputs, rows):
    """The means of relationships of each row: at their ends, and at their starts."""
    first = inputs.encoders.tables[0].width
    x = inputs.select(rows).features[0][:, first : inputs.encoders.widths[0]]
    return np.split(np.asarray(x), 2, axis=1)


@pytest.mark.parametrize("name", [OWN_COLUMNS, NUMBERS])
def test_fits_without_relationships_read_no_value_of_theirs(fitted, name):
    inputs, _ = fitted
    rows, other = seen(fitted), changed(fitted, name)
    assert all(part.any() for part in means(inputs, rows))  # the control
    assert not any(part.any() for part in means(other, rows))
    first, width = inputs.encoders.tables[0].width, inputs.encoders.widths[0]
    table = tree_columns(other.tree_inputs(rows), rows)
    assert not table[:, first:width].any()
    assert not table[:, -2:].any()  # counts of relationships, in and out


def test_numbers_of_relationships_with_columns_are_among_the_numbers(fitted):
    inputs, _ = fitted
    rows, other = seen(fitted), changed(fitted, NUMBERS)
    counts = inputs.tree_inputs(rows).count_related(rows)
    assert other.change.width == inputs.count_neighbours(rows).shape[1] == 3
    for real, column in zip(counts.T, other.change.columns[rows, -2:].T, strict=True):
        assert np.corrcoef(np.log1p(real), column)[0, 1] > 0.999


def test_values_go_where_their_relationship_goes(fitted):
    inputs, _ = fitted
    rows, other = seen(fitted), changed(fitted, PERMUTED)
    ends, starts = means(inputs, rows)
    new_ends, new_starts = means(other, rows)
    assert np.array_equal(starts, new_starts)
    assert not np.array_equal(ends, new_ends)
    table = inputs.mirror.related[0]
    places = np.flatnonzero(table.live)
    sources, targets = table.ends(places)
    moved = other.relation_means.targets[0][places]
    there = np.isin(sources, rows) & np.isin(targets, rows)
    assert (moved[~there] == -1).all()
    pairs = {}
    for source, target, end in zip(sources[there], targets[there], moved[there], strict=True):
        pairs.setdefault((int(source), int(target)), set()).add((int(source), int(end)))
    assert all(len(gone_to) == 1 for gone_to in pairs.values())  # parallel ones stay together
    assert len(pairs) < there.sum()
    assert any(source == target for source, target in pairs)  # loops are permuted too
    edges = {(int(a), int(b)) for a, b in other.change.edges[:2].T}
    assert set().union(*pairs.values()) == edges
