"""What `ringfence verify` says of itself: everything, since a checkpoint, or by digests."""

from dataclasses import replace

from typer.testing import CliRunner

from ringfence.connector.errors import ConfigError
from ringfence.jobs.cli.app import app
from ringfence.jobs.cli.commands.record.verify import print_verification
from ringfence.jobs.integrity.checkpoint.compared_rows import SinceCheckpoint
from ringfence.jobs.integrity.verify import Verification

FULL = Verification(40, 9, 4_000, 40, ())
SINCE = SinceCheckpoint(31, 1, 500, 2, 8, 1_000, {1: 0.25})


def shown(done, capsys):
    print_verification(done)
    return " ".join(capsys.readouterr().out.split())


def test_a_full_one_says_that_everything_is_as_it_was_decided(capsys):
    told = shown(replace(FULL, why_full="the chain has no checkpoint yet", sealed=41), capsys)
    assert "Checked 40 chain entries, 9 runs and 4,000 predictions; the graph" in told
    assert "Everything was compared: the chain has no checkpoint yet." in told
    assert "Everything is as it was decided." in told
    assert "Checkpoint sealed as entry 41 of the chain." in told
    assert "4 runs were compared before" in shown(replace(FULL, resumed=4), capsys)


def test_one_since_a_checkpoint_says_what_it_left_out_and_what_its_sample_notices(capsys):
    told = shown(replace(FULL, kind="since", since=SINCE), capsys)
    assert "predictions in part; the graph" in told
    assert "Since the checkpoint of entry 31: 1 runs with 500 predictions, all compared." in told
    assert "2 of 8 runs with 1,000 predictions drawn" in told
    assert "an edit is noticed with chance 25 % in 1 older run." in told
    assert "Everything is as it was decided." not in told
    assert "ringfence verify --full compares the rest" in told
    nothing_older = replace(SINCE, drawn=0, of=0, drawn_predictions=0, chances={})
    assert "drawn" not in shown(replace(FULL, kind="since", since=nothing_older), capsys)


def test_a_problem_is_never_followed_by_all_is_well(capsys):
    for kind in ("full", "since", "quick"):
        told = shown(replace(FULL, kind=kind, problems=("run 1: alpha changed",)), capsys)
        assert "PROBLEM: run 1: alpha changed" in told
        assert "as it was decided" not in told


def test_everything_and_digests_alone_are_refused_together():
    done = CliRunner().invoke(app, ["verify", "--full", "--quick"])
    assert isinstance(done.exception, ConfigError)
    assert done.exception.next_step == "ringfence verify --full"
