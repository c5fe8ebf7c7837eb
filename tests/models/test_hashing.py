"""Numbers from keys: the same in every run, batch and order, and uniform."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from ringfence.models.hashing import SCORE, SPLIT, split, uniforms

KEYS = [f"i:{i}" for i in range(20_000)]
PARTS = {"train": 0.2, "validation": 0.2, "calibration": 0.6}


def test_a_number_belongs_to_its_key_and_not_to_batch_or_order():
    whole = uniforms(KEYS, 7, SCORE)
    order = np.random.default_rng(0).permutation(len(KEYS))
    assert np.array_equal(uniforms([KEYS[i] for i in order], 7, SCORE), whole[order])
    pieces = [uniforms(KEYS[i : i + 777], 7, SCORE) for i in range(0, len(KEYS), 777)]
    assert np.array_equal(np.concatenate(pieces), whole)
    drawn = np.random.default_rng(7)  # the control: a generator's numbers belong to the order
    assert not np.array_equal(
        drawn.random(len(KEYS))[order], np.random.default_rng(7).random(len(KEYS))
    )


def test_the_numbers_are_written_down_so_that_an_auditor_can_recompute_them():
    secret = hashlib.blake2b(b"(7, 'score')", digest_size=32, person=b"ringfence").digest()
    digest = hashlib.blake2b(b"s:abc", digest_size=8, key=secret).digest()
    expected = (int.from_bytes(digest, "big") >> 11) / 2**53
    assert uniforms(["s:abc"], 7, SCORE)[0] == expected


def test_seed_purpose_and_type_of_key_each_give_other_numbers():
    base = uniforms(KEYS, 7, SCORE)
    for other in (uniforms(KEYS, 8, SCORE), uniforms(KEYS, "7", SCORE), uniforms(KEYS, 7, SPLIT)):
        assert not np.any(other == base)
        assert abs(np.corrcoef(other, base)[0, 1]) < 0.03
    assert uniforms(["i:1"], 7, SCORE) != uniforms(["s:1"], 7, SCORE)


def test_the_numbers_are_uniform_in_the_half_open_unit_interval():
    drawn = uniforms(KEYS, 7, SCORE)
    assert drawn.dtype == np.float64
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    assert len(np.unique(drawn)) == len(KEYS)
    assert stats.kstest(drawn, "uniform").pvalue > 0.01
    assert stats.kstest(drawn**1.1, "uniform").pvalue < 1e-6  # the control: slightly bent


def test_no_keys_give_no_numbers():
    assert uniforms([], 7, SCORE).shape == (0,)
    assert split([], 7, PARTS)["train"].shape == (0,)


def test_the_split_is_a_partition_with_the_shares_asked_for():
    masks = split(KEYS, 7, PARTS)
    assert list(masks) == list(PARTS)
    assert np.array_equal(sum(mask.astype(int) for mask in masks.values()), np.ones(len(KEYS)))
    for name, share in PARTS.items():
        assert stats.binomtest(int(masks[name].sum()), len(KEYS), share).pvalue > 0.001


def test_nodes_that_arrive_later_move_nobody_to_another_part():
    before, after = split(KEYS[:5000], 7, PARTS), split(KEYS, 7, PARTS)
    assert all(np.array_equal(before[name], after[name][:5000]) for name in PARTS)


@pytest.mark.parametrize("shares", [{"a": 0.5, "b": 0.4}, {"a": 1.5, "b": -0.5}, {}])
def test_shares_that_make_no_whole_are_refused(shares):
    with pytest.raises(ValueError, match="add up to 1"):
        split(KEYS[:3], 7, shares)


def test_shares_that_floats_cannot_add_up_are_accepted():
    assert sum([0.1] * 10) != 1.0
    masks = split(KEYS, 7, {f"part{i}": 0.1 for i in range(10)})
    assert sum(int(mask.sum()) for mask in masks.values()) == len(KEYS)


@pytest.mark.parametrize("module", ["hashing", "guarantee.law", "conformal.rank"])
def test_light_modules_do_not_import_torch(module):
    code = f"import sys, ringfence.models.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
