"""From outputs to scores block by block: the bits of the steps one after the other."""

from types import SimpleNamespace

import numpy as np
import pytest

from ringfence.models.conformal import calibration_ranks
from ringfence.models.scores import SCORES, outputs
from ringfence.models.scores.diffusion import diffuse_scores
from ringfence.models.scores.outputs import in_steps, score_outputs

OPTIONS = {"penalty": 0.01, "k_reg": 2, "diffusion": 0.5}


@pytest.fixture
def blocks(monkeypatch):
    """Send inputs of every size through small blocks."""

    def call(*arguments, **named):
        with monkeypatch.context() as patch:
            patch.setattr(calibration_ranks, "MAX_SCORES_FOR_NUMPY", -1)
            patch.setattr(outputs, "NUMBERS_PER_BLOCK", 900)
            return score_outputs(*arguments, **named)

    return call


def draw(classes, dtype, nodes=301, seed=0):
    """Outputs with ties, far apart, and -inf, which a masked class has; neighbours at random."""
    rng = np.random.default_rng(seed + classes)
    logits = (rng.standard_normal((nodes, classes)) * 4).astype(dtype)
    logits[:90] = np.round(logits[:90])
    logits[90:99] = 0.0
    logits[99:110, classes // 2 :] = -900.0
    if classes > 1:
        logits[110:120, 0] = -np.inf
    counts = rng.integers(0, 9, nodes)
    counts[7] = 200
    offsets = np.concatenate([[0], np.cumsum(counts)])
    places, sources = rng.permutation(nodes), rng.integers(0, nodes, offsets[-1])
    near = SimpleNamespace(places=places, offsets=offsets, neighbours=sources)
    return logits, rng.random(nodes), near


def same(found, expected):
    return [
        np.array_equal(one, other)
        for one, other in (
            (found.scores, expected.scores),
            (found.top, expected.top),
            (found.entropy, expected.entropy),
        )
    ]


@pytest.mark.parametrize("classes", [1, 2, 7, 8, 10, 33, 129, 400])
@pytest.mark.parametrize("name", SCORES)
def test_blocks_give_the_bits_of_the_steps(blocks, name, classes):
    score = SCORES[name]
    options = {k: v for k, v in OPTIONS.items() if k in score.options}
    for dtype in (np.float32, np.float64):
        logits, u, near = draw(classes, dtype)
        near = near if score.needs_edges else None
        expected = in_steps(name, logits, u, options, near)
        for workers in (1, 3):
            assert all(same(blocks(name, logits, u, options, near, workers), expected))
        if classes > 1:  # the control: one output that moves a little is seen
            logits[250, 1] += 1e-3
            assert not all(same(blocks(name, logits, u, options, near), expected))


@pytest.mark.parametrize("values", [*range(1, 40), 127, 128, 129, 136, 255, 300, 1000, 2049])
def test_sums_are_those_of_numpy(values):
    from ringfence.models.scores.kernels.softmax import divide_by_sums

    given = np.random.default_rng(values).random((50, values)) ** 9
    expected = given / given.sum(axis=-1, keepdims=True)
    top, plan = np.empty(50), outputs.sum_plan(values)
    assert plan[:, 0].sum() == values
    divide_by_sums(given, plan, top)
    assert np.array_equal(given, expected)
    assert np.array_equal(top, expected.max(axis=1))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", SCORES)
def test_outputs_that_are_no_numbers_are_refused(blocks, name, bad):
    logits, u, near = draw(5, np.float32)
    options = {k: v for k, v in OPTIONS.items() if k in SCORES[name].options}
    near = near if SCORES[name].needs_edges else None
    logits[200, 3] = bad
    with pytest.raises(ValueError, match=r"probabilities lie in \[nan, nan\]"):
        blocks(name, logits, u, options, near, 2)
    logits[200, 3] = 0.0
    with pytest.raises(ValueError, match="u has values outside"):
        blocks(name, logits, u + 1.0, options, near)


def test_a_node_of_very_many_neighbours_has_the_exact_mean():
    rng, nodes = np.random.default_rng(2), 300_000  # above 2^18
    scores = -rng.random((nodes, 2))
    offsets, everyone = np.array([0, nodes]), np.arange(nodes)
    found = diffuse_scores(scores, np.array([0]), offsets, everyone, 1.0)
    backwards = diffuse_scores(scores, np.array([0]), offsets, everyone[::-1].copy(), 1.0)
    assert np.array_equal(found, backwards)
    np.testing.assert_allclose(found[0], scores.mean(axis=0), rtol=1e-13)


def test_a_score_of_neighbours_needs_them(blocks):
    logits, u, _ = draw(3, np.float32)
    with pytest.raises(ValueError, match="needed: the neighbours"):
        blocks("DAPS", logits, u, {"diffusion": 0.5})
