"""Rows on record keep their words until their counts change."""

from dataclasses import replace

from ringfence.connector.store.tallies import COUNTS, SUMS, Tally
from ringfence.jobs.auditing.coverage import coverage_rows
from ringfence.jobs.auditing.sealed_rows import COUNTED, JUDGED, keep_sealed


def rows_of(covered):
    runs = [
        Tally(
            seq=seq, model="m", rule="auto", score="APS", alpha=0.1, options="{}",
            n_calibration=200, effective_calibration=200.0, name="",
            counts=dict.fromkeys(COUNTS, 0) | {"evaluated": 100, "known": 100, "covered": hits},
            sums=dict.fromkeys(SUMS, 0.0),
        )
        for seq, hits in enumerate(covered, 1)
    ]  # fmt: skip
    return coverage_rows(runs, (), (), 10)


def said(rows):
    return {(row.slice, row.seq): row.verdict for row in rows}


def test_old_words_stand_over_old_counts_and_new_ones_over_new():
    first = rows_of([90, 91, 89])
    old = [replace(row, verdict="watch", words="an older version's words") for row in first]
    again = keep_sealed(first, old)
    assert again == old
    later = keep_sealed(rows_of([90, 91, 89, 90]), old)
    assert {row.words for row in later if row.seq < 4} == {"an older version's words"}
    assert said(later)[("run", 4)] == said(later)[("total", 4)] == "kept"


def test_a_run_that_changed_is_judged_anew_and_so_is_every_total_after_it():
    old = [replace(row, words="old") for row in rows_of([90, 91, 89])]
    swapped = keep_sealed(rows_of([90, 89, 91]), old)
    fresh = {(row.slice, row.seq) for row in swapped if row.words != "old"}
    assert fresh == {("run", 2), ("run", 3), ("window", 2), ("window", 3), ("total", 2),
                     ("total", 3)}  # fmt: skip


def test_every_column_is_either_counted_or_judged():
    row = rows_of([90])[0]
    assert all(hasattr(row, name) for name in (*JUDGED, *COUNTED))
    assert not set(JUDGED) & set(COUNTED)
