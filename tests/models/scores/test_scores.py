"""Scores: the formulas on small cases, equivariance, ties, precision."""

import numpy as np
import pytest
import torch

from ringfence.models.scores import (
    aps,
    aps_true,
    daps,
    entropies,
    raps,
    raps_true,
    softmax64,
    tps,
    tps_true,
)
from ringfence.models.scores.base import ROWS_PER_BLOCK

RNG = np.random.default_rng(0)
PROBABILITIES = RNG.dirichlet(np.full(7, 0.5), size=300)
U = RNG.random(300)


def aps_by_definition(probabilities, u, penalty=0.0, k_reg=0):
    """Each cell from the sentence in the paper; sums over sorted values, as documented."""
    found = np.empty(probabilities.shape)
    for i, row in enumerate(probabilities.astype(np.float64)):
        for y, own in enumerate(row):
            rho = 0.0
            above = sorted(row[row > own], reverse=True)
            for value in above:
                rho += value
            found[i, y] = -(rho + u[i] * own + penalty * max(0, len(above) + 1 - k_reg))
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [1, 2, 3, 7, 10, 33])
def test_aps_and_raps_are_their_definitions_to_the_bit(dtype, classes):
    given = RNG.dirichlet(np.full(classes, 0.4), size=200).astype(dtype)
    given[:50] = np.round(given[:50], 1)  # plenty of ties
    u = RNG.random(200)
    assert np.array_equal(aps(given, u), aps_by_definition(given, u))
    expected = aps_by_definition(given, u, penalty=0.05, k_reg=2)
    assert np.array_equal(raps(given, u, 0.05, 2), expected)


def test_scores_of_the_true_class_alone_are_those_of_all_classes():
    classes = RNG.integers(0, 7, size=300)
    rows = np.arange(300)
    for given in (PROBABILITIES, PROBABILITIES.astype(np.float32), PROBABILITIES.round(1)):
        assert np.array_equal(tps_true(given, classes), tps(given)[rows, classes])
        assert np.array_equal(aps_true(given, U, classes), aps(given, U)[rows, classes])
        regular = raps(given, U, 0.1, 2)[rows, classes]
        assert np.array_equal(raps_true(given, U, classes, 0.1, 2), regular)


def test_scores_do_not_depend_on_how_nodes_and_classes_are_numbered():
    nodes, classes = RNG.permutation(300), RNG.permutation(7)
    moved = aps(PROBABILITIES[nodes][:, classes], U[nodes])
    assert np.array_equal(moved, aps(PROBABILITIES, U)[nodes][:, classes])
    # the control: summing in the order of the classes
    plain = lambda p: np.array([[row[row > own].sum() for own in row] for row in p])  # noqa: E731
    assert not np.array_equal(plain(PROBABILITIES[:, classes]), plain(PROBABILITIES)[:, classes])


def test_float32_ties_the_scores_of_an_overconfident_network_and_float64_does_not():
    logits = torch.randn(2000, 5, generator=torch.Generator().manual_seed(0)) * 6
    u = torch.rand(2000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    fine = aps(softmax64(logits), u)
    p32 = torch.softmax(logits, dim=1)
    above = (p32[:, None, :] * (p32[:, None, :] > p32[:, :, None])).sum(-1)
    coarse = -(above + u[:, None].float() * p32)
    assert len(torch.unique(fine)) == fine.numel()
    assert len(torch.unique(coarse)) < 0.8 * coarse.numel()
    assert softmax64(logits).dtype == fine.dtype == torch.float64


def test_a_uniform_u_makes_the_true_score_uniform_when_the_network_is_calibrated():
    classes = np.array([RNG.choice(7, p=row) for row in PROBABILITIES])
    scores = aps_true(PROBABILITIES, U, classes)
    assert abs(np.mean(-scores) - 0.5) < 0.05


def test_everything_torch_takes_is_taken():
    rows, u = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], [0.5, 0.25]
    expected = aps(np.array(rows), np.array(u))
    assert np.array_equal(aps(rows, u), expected)
    assert np.array_equal(aps(torch.tensor(rows, dtype=torch.float64), torch.tensor(u)), expected)
    graded = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    assert np.array_equal(aps(graded, u), expected)
    turned = torch.tensor(rows, dtype=torch.float64).T.contiguous().T
    assert np.array_equal(aps(turned, u), expected)
    assert aps(np.zeros((0, 3)), np.zeros(0)).shape == (0, 3)
    assert aps(torch.tensor(rows).bfloat16(), u).dtype == torch.float64


def test_daps_mixes_with_the_mean_of_the_neighbours():
    scores = aps(PROBABILITIES[:5], U[:5])
    edges = np.array([[0, 1, 2, 1, 3], [1, 0, 1, 2, 1]])
    mixed = daps(scores, edges, 0.6)
    expected = 0.4 * scores[1] + 0.6 * (scores[0] + scores[2] + scores[3]) / 3
    assert np.allclose(mixed[1], expected, rtol=0, atol=1e-15)
    assert np.array_equal(mixed[4], scores[4])
    assert np.array_equal(daps(scores, edges, 0.0), scores)
    assert np.array_equal(daps(scores, np.zeros((2, 0), dtype=int), 0.6), scores)


def test_daps_does_not_depend_on_the_order_of_edges_and_nodes():
    scores = aps(PROBABILITIES, U)
    edges = RNG.integers(0, 300, size=(2, 20_000))
    whole = daps(scores, edges, 0.6)
    assert np.array_equal(daps(scores, edges[:, RNG.permutation(20_000)], 0.6), whole)
    order = RNG.permutation(300)
    place = np.argsort(order)
    assert np.array_equal(daps(scores[order], place[edges], 0.6), whole[order])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aps([[0.5, float("nan")]], [0.5]), "needed: numbers in"),
        (lambda: aps([[3.0, -2.0]], [0.5]), "softmax64"),
        (lambda: aps([0.5, 0.5], [0.5]), "n, classes"),
        (lambda: aps([[0.5, 0.5]], [0.5, 0.5]), "one per node"),
        (lambda: aps([[0.5, 0.5]], [1.5]), "outside"),
        (lambda: raps([[0.5, 0.5]], [0.5], -1.0, 1), "at least 0"),
        (lambda: aps_true([[0.5, 0.5]], [0.5], [2]), "0 to 1"),
        (lambda: aps_true([[0.5, 0.5]], [0.5], [-1]), "not known"),
        (lambda: aps_true([[0.5, 0.5]], [0.5], [0.0]), "whole numbers"),
        (lambda: daps([[0.5, 0.5]], [[0], [1]], 0.5), "outside"),
        (lambda: daps([[0.5, 0.5]], [[0], [0]], 1.5), "diffusion"),
        (lambda: tps([[float("nan"), 0.5]]), "needed: numbers in"),
    ],
)
def test_what_is_no_probability_is_refused_with_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("rows", [0, 1, ROWS_PER_BLOCK, 2 * ROWS_PER_BLOCK + 7])
@pytest.mark.parametrize("classes", [1, 3, 10, 33])
def test_softmax_and_entropy_have_the_bits_of_one_pass_over_everything(rows, classes):
    """They go block by block, so that memory is read once; no row may notice its block."""
    logits = np.random.default_rng(rows).normal(0, 8, (rows, classes)).astype(np.float32)
    wide = logits.astype(np.float64)
    wide = np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-np.inf))
    expected = wide / wide.sum(axis=-1, keepdims=True)
    found = softmax64(logits)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        entropies(found), -(expected * np.log(np.maximum(expected, 2.0**-1022))).sum(axis=1)
    )
    turned = np.asfortranarray(logits)
    np.testing.assert_array_equal(softmax64(turned), expected)
    assert (logits == np.random.default_rng(rows).normal(0, 8, logits.shape).astype("f4")).all()
