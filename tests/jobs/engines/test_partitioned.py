"""An engine of partitions: what it keeps between runs, what a death costs, what it refuses."""

import shutil

import numpy as np
import pytest

from ringfence.connector.errors import ConfigError, ServerError
from ringfence.connector.mirror import create_raw, load, save
from ringfence.jobs import inference
from ringfence.jobs.engines.ownership_file import ownership_folder, read_owners
from ringfence.jobs.engines.partition_host import PartitionHost
from ringfence.jobs.inference.mapped_arrays import MappedArrays
from tests.jobs.engines.hosts import HereEngine, HereWorkers
from tests.jobs.inference.test_table_pass import MAPPING, Line

TABLES = "partitioned"


class DividedLine(Line):
    """The line of the single machine, with another engine beside it on the same mirror."""

    def __init__(self, folder, network="sage", parts=3):
        super().__init__(folder, network)
        self.parts = parts
        self.restart()

    def restart(self, dies_at=0):
        """Other processes: what they know is on disk."""
        place = ownership_folder(self.folder / TABLES)
        self.engine = HereEngine(HereWorkers(place, self.parts, dies_at))

    def both(self):
        rows, local = self.score()
        graph = inference.inference_graph(self.mirror, MAPPING)
        divided = self.engine.outputs_at(
            self.folder / TABLES, self.model, self.mirror, MAPPING, graph, rows
        )
        assert np.array_equal(local.logits.view(np.int32), divided.logits.view(np.int32))
        return divided.sentence

    def finish(self):
        save(self.mirror, self.folder / "mirror")
        inference.close_tables(self.folder / "forward", self.model, self.mirror)
        self.engine.close_tables(self.folder / TABLES, self.model, self.mirror)
        self.mirror = load(self.folder / "mirror", "graph")


@pytest.mark.parametrize("name", ["gcn", "gat"])
def test_runs_by_other_processes_go_on_where_the_last_one_closed(tmp_path, name):
    line = DividedLine(tmp_path, name)
    assert "3 of 3 partitions were filled from the mirror" in line.both()
    line.finish()
    for nodes in (3, 0, 40):
        line.restart()
        line.grow(nodes, 6)
        assert "only what changed was computed again" in line.both()
        line.finish()
    owners = read_owners(line.folder / TABLES, line.mirror.epoch, 3)
    assert len(owners) == line.mirror.size


def part_files(line, part, name):
    place = ownership_folder(line.folder / TABLES)
    return list(place.glob(f"part-{part}-of-3/*/{name}"))


def damage(line):
    (file,) = part_files(line, 1, "second")
    raw = bytearray(file.read_bytes())
    raw[40] ^= 1
    file.write_bytes(raw)


def lose_disk(line):
    (file,) = part_files(line, 1, "second")
    shutil.rmtree(file.parent)


def leave_open(line):
    line.restart()
    line.grow(1, 3)
    line.both()  # and no close: as after a crash before the mirror was saved
    line.mirror = load(line.folder / "mirror", "graph")


@pytest.mark.parametrize(("harm", "filled"), [(damage, 1), (lose_disk, 1), (leave_open, 3)])
def test_a_partition_that_cant_be_trusted_is_filled_again(tmp_path, harm, filled):
    line = DividedLine(tmp_path)
    line.both()
    line.finish()
    harm(line)
    line.restart()
    line.grow(2, 4)
    assert f"{filled} of 3 partitions were filled" in line.both()


@pytest.mark.parametrize("what", ["second", "..", "../.."])
def test_a_worker_that_lives_and_whose_files_are_gone_is_filled_again(tmp_path, what):
    """One of its files, its partition, or all that workers have on this disk."""
    line = DividedLine(tmp_path)
    line.both()
    line.finish()
    for nodes in (0, 40):
        remove_for_living(line, what)
        line.grow(nodes, 6)
        filled = 3 if what == "../.." else 1
        assert f"{filled} of 3 partitions were filled" in line.both()
        line.finish()
        line.grow(1, 2)
        assert "only what changed" in line.both()
        line.finish()


def remove_for_living(line, what):
    (file,) = part_files(line, 1, "second")
    place = file.parent / what
    place.unlink() if place.is_file() else shutil.rmtree(place.resolve())


def test_files_that_go_inside_a_run_are_looked_for(tmp_path, monkeypatch):
    line = DividedLine(tmp_path)
    line.both()
    remove_for_living(line, "..")
    assert "1 of 3 partitions were filled" in line.both()
    remove_for_living(line, "..")
    monkeypatch.setattr(MappedArrays, "are_on_disk", lambda self: True)
    with pytest.raises(ServerError, match="died in 3 passes"):  # without the look
        line.both()


def test_workers_that_live_forget_a_run_whose_mirror_was_never_saved(tmp_path):
    """Its new rows are other nodes now, under the same numbers."""
    line = DividedLine(tmp_path)
    line.both()
    line.finish()
    line.grow(5, 9)
    line.both()
    line.mirror = load(line.folder / "mirror", "graph")
    line.grow(7, 9)
    assert "3 of 3 partitions were filled" in line.both()
    line.finish()
    line.grow(1, 2)
    assert "only what changed" in line.both()


def test_another_number_of_partitions_divides_anew(tmp_path):
    line = DividedLine(tmp_path)
    line.both()
    line.finish()
    line.parts = 2
    line.restart()
    assert "2 of 2 partitions were filled" in line.both()


@pytest.fixture(scope="module")
def calls_of_a_pass(tmp_path_factory):
    line = DividedLine(tmp_path_factory.mktemp("calls"), "gcn")
    line.both()
    return len(line.engine.workers.calls)


@pytest.mark.parametrize("share", [0.02, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.0])
def test_a_worker_that_dies_at_any_stage_costs_a_second_try_and_no_bit(
    tmp_path, calls_of_a_pass, share
):
    line = DividedLine(tmp_path, "gcn")
    line.restart(dies_at=max(1, int(share * calls_of_a_pass)))
    assert "1 times a worker died, or its files, and the pass began again" in line.both()
    line.finish()
    line.restart()
    line.grow(5, 9)
    line.both()


def test_a_pass_whose_workers_always_die_says_so(tmp_path, monkeypatch):
    line = DividedLine(tmp_path)
    monkeypatch.setattr(HereWorkers, "revive", lambda self: None)
    line.restart(dies_at=2)
    with pytest.raises(ServerError, match="died in 3 passes") as error:
        line.both()
    assert "ringfence partition" in error.value.next_step


def test_what_an_engine_of_partitions_cant_compute_is_refused(tmp_path, monkeypatch):
    line = DividedLine(tmp_path)
    monkeypatch.setattr(type(line.model), "plan", lambda self: None)
    with pytest.raises(ConfigError, match="can't compute the network sage yet") as error:
        line.engine.outputs_at(tmp_path, line.model, line.mirror, MAPPING, None, np.array([0]))
    assert 'kind = "local"' in error.value.next_step
    line.engine.require_network("gcn")
    line.engine.require_network("typed_sage")
    with pytest.raises(ConfigError, match=r"the network their\.module:Net yet"):
        line.engine.require_network("their.module:Net")
    raw = create_raw(tmp_path / "raw", "graph", [["hour"]])
    nothing = {"schema": {"labels": [], "relations": []}, "encoders": [], "left_out": {}}
    line.model.manifest.update(network="their.module:Net", typed=nothing)
    with pytest.raises(ConfigError, match=r"the network their\.module:Net yet"):
        line.engine.outputs_at(tmp_path, line.model, raw, MAPPING, None, np.array([0]))


def test_a_host_refuses_rows_that_it_does_not_own(tmp_path):
    line = DividedLine(tmp_path)
    line.both()
    host = line.engine.workers.hosts[0]
    theirs = np.flatnonzero(host.part.owners == 1)[:1]
    with pytest.raises(ValueError, match="does not own"):
        host.give(0, theirs)
    with pytest.raises(ValueError, match="was not opened"):
        PartitionHost(str(tmp_path), 0, 1, 1).seal()


def test_every_stage_is_told_with_its_bytes_and_seconds(tmp_path):
    line, stages, said = DividedLine(tmp_path), [], []
    line.engine.watch = stages.append
    line.engine.set_progress(lambda what, done, all_: said.append((what, done, all_)))
    line.both()
    assert [one.name for one in stages] == ["divide", "send", "first layer", "outputs", "seal"]
    moved = {one.name: one.moved for one in stages}
    features = line.mirror.features.nbytes
    assert moved["send"] > features  # every partition was filled
    assert 0 < moved["first layer"] < features * 9
    assert moved["seal"] == moved["divide"] == 0
    assert ("forward pass: send", line.mirror.size, 0) in said
    rows, found = line.mirror.size, line.engine.outputs_at(
        line.folder / TABLES, line.model, line.mirror, MAPPING,
        inference.inference_graph(line.mirror, MAPPING), np.arange(3),
    )  # fmt: skip
    assert set(found.seconds) == {"send", "first layer", "outputs", "seal"}
    assert rows == line.mirror.size


def test_the_process_that_starts_a_pass_maps_no_features(tmp_path):
    """They are read block by block: the column's own map is never made."""
    line = DividedLine(tmp_path)
    line.finish()
    graph = inference.inference_graph(line.mirror, MAPPING)
    line.engine.outputs_at(
        line.folder / TABLES, line.model, line.mirror, MAPPING, graph, np.arange(line.mirror.size)
    )
    assert line.mirror.tables[0].column._mapped is None
    assert graph.others.sum() == line.mirror.adjacency.others.array.sum()  # pages that went return
