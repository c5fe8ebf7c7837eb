"""Versions and their seed keys: made once, found by digest, never replaced unasked."""

import gzip
import json
import zipfile
from dataclasses import replace

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from ringfence.connector.errors import ConfigError, ModelError
from ringfence.connector.store.models import manifests
from ringfence.connector.store.tables import metadata
from ringfence.jobs.auditing.audit import run_audit
from ringfence.jobs.explanation.find import find_reasons
from ringfence.jobs.integrity.verify import run_verification
from ringfence.jobs.lifecycle.promotion import run_promotion
from ringfence.jobs.project.node_seed import SEED_KEY, describe_missing_keys, node_seed
from ringfence.jobs.project.seed_key import SeedKeys, parse_seed_key, seed_keys
from ringfence.jobs.report.pack import run_pack
from ringfence.jobs.scoring.rescore import run_rescoring
from ringfence.jobs.scoring.score import run_scoring
from ringfence.jobs.setup.checks.seed_key import check_seed_key
from ringfence.jobs.training.train import run_training
from ringfence.models import hashing
from tests.forms import typed_as_well
from tests.project_copies import Stage, load_first, sample_parts, starts_from
from tests.stores import postgresql_later

SECRET = "c0ffee5e1f5e1f00ba5eba11deadbea7"
OTHER = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
ROLES = """SELECT m.node_key, m.role FROM member m JOIN member o ON o.node_key = m.node_key
WHERE m.version = :version AND o.version <> :version"""


def with_key(workspace, key):
    """The project as on a machine with this key in the environment; None for none there."""
    secret = None if key is None else SecretStr(key)
    return replace(workspace, settings=workspace.settings.model_copy(update={"seed_key": secret}))


def train_with(key):
    """The work of a stage: a model of the first accounts, trained with this key."""

    def train(workspace, sample):
        load_first(sample_parts(workspace, sample))
        run_training(with_key(workspace, key))

    return train


secret_key = starts_from(Stage("trained with a secret key", "migrated", train_with(SECRET)))
made_key = starts_from(Stage("trained with a key that was made", "migrated", train_with(None)))


def unknown(grown):
    """How many of the first accounts have no kind."""
    return int((~grown.labelled[grown.first.nodes]).sum())


def newest_manifest(workspace):
    return json.loads(manifests(workspace.store, workspace.project)[-1])


def rows_of(workspace, columns="node_key, p_values, scores, classes"):
    with workspace.store.reading() as connection:
        rows = connection.execute(text(f"SELECT {columns} FROM prediction ORDER BY node_key"))
        return [tuple(row) for row in rows]


@typed_as_well
def test_a_first_training_makes_a_key_and_runs_use_it(grown):
    workspace = with_key(grown.workspace, None)
    assert [finding.level for finding in check_seed_key(workspace.store, workspace.settings)] == [
        "ok"
    ]
    trained = run_training(workspace)
    keys = seed_keys(workspace.settings)
    key = keys.current()
    assert any(str(keys.file) in sentence for sentence in trained.announced)
    assert newest_manifest(workspace)[SEED_KEY] == key.digest
    assert run_scoring(workspace).evaluated == unknown(grown)
    assert run_verification(workspace).problems == ()
    (finding,) = check_seed_key(workspace.store, workspace.settings)
    assert finding.level == "ok"
    assert "every machine" in finding.text
    again = run_training(workspace)  # the same key, and nothing is announced
    assert not any("seed key" in sentence for sentence in again.announced)
    assert newest_manifest(workspace)[SEED_KEY] == key.digest


@typed_as_well
def test_u_follows_from_the_key_and_roles_do_not(grown, monkeypatch):
    """Roles are drawn by the seed; scores by the key: other keys, same split, other p-values."""
    workspace, drawn = with_key(grown.workspace, SECRET), []
    keyed = hashing.uniforms

    def noted(keys, seed, purpose):
        drawn.append((purpose, seed))
        return keyed(keys, seed, purpose)

    monkeypatch.setattr(hashing, "uniforms", noted)
    first = run_training(workspace)
    second = run_training(with_key(workspace, OTHER), new_seed_key=True)
    assert {seed for purpose, seed in drawn if purpose == "split"} == {0}
    assert {seed for purpose, seed in drawn if purpose == "holdout"} == {workspace.project}
    with workspace.store.reading() as connection:
        roles = {
            version: {tuple(row) for row in connection.execute(text(ROLES), {"version": version})}
            for version in (first.version, second.version)
        }
    assert len(roles[first.version]) > 100
    assert roles[first.version] == roles[second.version]
    drawn.clear()
    run_scoring(workspace)
    grown.reveal(grown.first.nodes)
    run_audit(workspace)
    grown.arrive(grown.later[0])
    run_scoring(workspace)  # calibrates with a window and notes what the monitor needs
    seeds = {purpose: {seed for name, seed in drawn if name == purpose} for purpose, _ in drawn}
    secret = {int(SECRET, 16)}
    assert seeds.get("split", {0}) == {0}
    for purpose in ("score", "watch", "watch order", "window"):
        assert seeds[purpose] == secret, purpose


@postgresql_later
def test_a_version_without_a_digest_keeps_u_of_its_seed(trained):
    """As versions from before there were seed keys: whatever key is here, u is that of the seed."""
    workspace = trained.workspace
    manifest = newest_manifest(workspace)
    assert node_seed(workspace.settings, manifest) == 0  # the published key of the tests
    old = {name: value for name, value in manifest.items() if name != SEED_KEY} | {"seed": 4}
    for key in (None, SECRET):
        assert node_seed(with_key(workspace, key).settings, old) == 4
        with pytest.raises(ModelError):  # the control: with a digest, the key must be the one
            node_seed(with_key(workspace, key).settings, manifest)


@postgresql_later
@secret_key
def test_another_key_gives_other_sets_and_the_same_key_the_same(trained):
    """The negative control of all that compares sets: u is a part of them."""
    workspace = with_key(trained.workspace, SECRET)
    run_scoring(workspace)
    first = rows_of(workspace)
    with workspace.store.reading() as connection:
        keys = [row[0] for row in connection.execute(text("SELECT node_key FROM prediction"))]
    plain = [key.partition(":")[2] for key in keys]
    again = run_rescoring(workspace, plain, "once more").sets
    sets = {key: tuple(json.loads(classes)) for key, _, _, classes in first}
    assert again == sets
    run_training(with_key(workspace, OTHER), promote="other", new_seed_key=True)
    other = run_rescoring(with_key(workspace, OTHER), plain, "another key").sets
    assert other != sets


@postgresql_later
@secret_key
@pytest.mark.parametrize("key", [None, OTHER], ids=["lost", "wrong"])
def test_a_lost_or_wrong_key_is_refused_and_never_replaced(trained, key):
    workspace = with_key(trained.workspace, SECRET)
    without = with_key(workspace, key)
    trained.arrive(trained.later[0])
    for attempt in (
        lambda: run_training(without),
        lambda: run_scoring(without),
        lambda: run_rescoring(without, ["1"], "why not"),
    ):
        with pytest.raises(ModelError, match="the seed key of model") as refused:
            attempt()
        assert "--new-seed-key" in refused.value.next_step
        assert "restore seed.key" in refused.value.next_step
        assert SECRET not in str(refused.value)
        assert OTHER not in str(refused.value)
    assert not seed_keys(without.settings).file.exists()
    assert len(manifests(workspace.store, workspace.project)) == 1
    assert rows_of(workspace) == []
    findings = list(check_seed_key(without.store, without.settings))
    assert findings[0].level == "error"
    assert "not here" in findings[0].text
    assert run_scoring(workspace).evaluated == unknown(trained) + 100  # with the key all goes on


@postgresql_later
@made_key
def test_only_an_explicit_wish_makes_another_key(trained):
    workspace = with_key(trained.workspace, None)
    first = newest_manifest(workspace)["version"]
    keys = seed_keys(workspace.settings)
    before = keys.current()
    keys.file.unlink()
    with pytest.raises(ModelError):
        run_training(workspace)
    done = run_training(workspace, promote="the key was lost", new_seed_key=True)
    assert any("a new seed key was made" in sentence for sentence in done.announced)
    assert keys.current().digest != before.digest
    assert run_scoring(workspace).evaluated == unknown(trained)
    with pytest.raises(ModelError, match=first):
        run_promotion(workspace, first, "back")
    assert run_verification(workspace).problems == ()


@postgresql_later
@made_key
def test_a_new_key_leaves_the_one_in_use_in_use(trained):
    """A key that leaked: the version in use needs the old one until the next is promoted."""
    workspace = with_key(trained.workspace, None)
    keys = seed_keys(workspace.settings)
    before = keys.current()
    second = run_training(workspace, new_seed_key=True)
    assert second.state == "candidate"
    assert second.comparison is not None or "seed key" not in second.not_compared
    assert keys.current().digest != before.digest
    due = unknown(trained)
    assert run_scoring(workspace).evaluated == due  # with the old key, which lies beside
    run_promotion(workspace, second.version, "the new key")
    trained.arrive(trained.later[0])
    assert run_scoring(workspace).evaluated == 100
    levels = [finding.level for finding in check_seed_key(workspace.store, workspace.settings)]
    assert levels == ["ok"]


@postgresql_later
def test_a_new_key_that_is_the_old_one_is_refused(trained):
    with pytest.raises(ConfigError, match="holds the key of the versions so far"):
        run_training(trained.workspace, new_seed_key=True)


@postgresql_later
def test_a_guessable_key_and_an_old_version_are_warned_of(trained):
    workspace = trained.workspace
    (finding,) = check_seed_key(workspace.store, workspace.settings)
    assert finding.level == "warning"
    assert "guessable" in finding.text
    manifest = newest_manifest(workspace)
    del manifest[SEED_KEY]
    with workspace.store.transaction() as connection:
        connection.execute(text("UPDATE model SET manifest = :m"), {"m": json.dumps(manifest)})
    (finding,) = check_seed_key(workspace.store, workspace.settings)
    assert finding.level == "warning"
    assert "[model] seed" in finding.text


@postgresql_later
def test_who_has_no_key_can_check_everything_else(scored):
    """An auditor who is given the audit key alone: a sentence, and all other checks."""
    workspace = with_key(scored.workspace, None)
    done = run_verification(workspace)
    assert done.problems == ()
    (note,) = done.notes
    assert "can't be recomputed here" in note
    assert "RINGFENCE_SEED_KEY" in note
    assert run_verification(scored.workspace).notes == ()
    with scored.workspace.store.transaction() as connection:
        connection.execute(text("UPDATE prediction SET size = size + 1"))
    assert run_verification(workspace).problems  # the control: an edit is still found
    seed_keys(workspace.settings).write()
    seed_keys(workspace.settings).file.chmod(0o644)
    assert any("mode 0644" in note for note in run_verification(workspace).notes)


@postgresql_later
def test_the_digest_is_sealed(scored):
    """Another digest in SQL, so that another key would fit: the chain has the manifest's hash."""
    workspace = scored.workspace
    manifest = newest_manifest(workspace) | {SEED_KEY: parse_seed_key(OTHER, "").digest}
    with workspace.store.transaction() as connection:
        connection.execute(text("UPDATE model SET manifest = :m"), {"m": json.dumps(manifest)})
    problems = run_verification(workspace).problems
    assert any("its manifest is not the one that was recorded" in said for said in problems)


@typed_as_well
def test_the_key_is_in_no_store_graph_pack_or_output(grown, tmp_path, capfd):
    workspace = with_key(grown.workspace, SECRET)
    shown = [repr(run_training(workspace)), repr(run_scoring(workspace))]
    grown.reveal(grown.first.nodes)
    shown += [repr(run_audit(workspace)), repr(run_verification(workspace))]
    shown += [repr(list(check_seed_key(workspace.store, workspace.settings))), repr(workspace)]
    pack = tmp_path / "audit.zip"
    run_pack(workspace.settings, pack)
    shown += [*_texts_of(pack), *_sql_texts(workspace), *_graph_texts(workspace)]
    shown += [file.read_text("utf-8", "replace") for file in _files(workspace)]
    shown += list(capfd.readouterr())
    digest = parse_seed_key(SECRET, "").digest
    assert any(digest in text_ for text_ in shown)  # the search finds what is there
    for text_ in shown:
        assert SECRET not in text_.lower()
        assert str(int(SECRET, 16)) not in text_


def _texts_of(pack):
    with zipfile.ZipFile(pack) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    plain = [
        gzip.decompress(data) if name.endswith(".gz") else data for name, data in files.items()
    ]
    return [data.decode("utf-8", "replace") for data in plain]


def _sql_texts(workspace):
    with workspace.store.reading() as connection:
        return [repr(connection.execute(table.select()).all()) for table in metadata.sorted_tables]


def _graph_texts(workspace):
    rows = workspace.graph.read("MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN n, r")
    return [repr(row.data()) for row in rows] + [
        repr(dict(row["n"])) for row in workspace.graph.read("MATCH (n) RETURN n")
    ]


def _files(workspace):
    return [path for path in workspace.folder.rglob("*") if path.is_file()]


@postgresql_later
def test_missing_keys_are_named_by_version_and_digest(tmp_path, trained):
    recorded = manifests(trained.workspace.store, trained.workspace.project)
    settings = with_key(trained.workspace, None).settings
    said = describe_missing_keys(settings, recorded)
    assert newest_manifest(trained.workspace)["version"] in said
    assert describe_missing_keys(settings, ["{no json"]).endswith("a manifest can't be read")
    assert SeedKeys(None, tmp_path).current() is None


@postgresql_later
def test_explanations_need_the_key_too(scored):
    workspace = scored.workspace
    with workspace.store.reading() as connection:
        query = "SELECT node_key, model FROM prediction JOIN run USING (project, seq)"
        key, version = connection.execute(text(query)).first()
    assert find_reasons(workspace, key, version, {}).p_values
    with pytest.raises(ModelError, match="the seed key of model"):
        find_reasons(with_key(workspace, None), key, version, {})
