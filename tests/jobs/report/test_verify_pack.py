"""`verify_pack.py` in a Python without ringfence: healthy packs fit, edited ones are named."""

import hashlib
import json
import zipfile

import pytest

from ringfence.connector.errors import ConfigError
from ringfence.connector.store.engine import open_store
from ringfence.jobs.report.pack import PackRequest, run_pack
from ringfence.jobs.report.period import Period, parse_period, runs_of_period
from tests.jobs.report.packs import (
    check,
    make_record,
    read_lines,
    read_pack,
    with_lines,
    write_edited,
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return make_record(tmp_path_factory.mktemp("record"))


@pytest.fixture(scope="module")
def period(settings):
    """From after the first run on: the second run and those after it."""
    store = open_store(settings.audit.url)
    first = runs_of_period(store, settings.project, Period())[0]
    store.close()
    return Period(first.decided_ns + 1, None)


@pytest.fixture(scope="module", params=["plain", "salted"])
def packed(request, settings, period, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param) / "audit.zip"
    run_pack(settings, path, PackRequest(period, request.param == "salted"))
    return path


@pytest.fixture(scope="module")
def script(packed, tmp_path_factory):
    """The script as it stands in the pack."""
    path = tmp_path_factory.mktemp("script") / "verify_pack.py"
    path.write_bytes(read_pack(packed)["verify_pack.py"])
    return path


def test_a_healthy_pack_fits_and_the_script_says_what_it_saw(packed, script):
    done = check(packed, script=script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "DOES NOT FIT" not in done.stdout
    for words in (
        "files have the SHA-256 that SHA256SUMS lists",
        "entries without a gap",
        "3 runs were decided in the period (run 2 to 4); 120 predictions of 3 of them",
        "3 runs, 4 classes, 3 groups, as coverage.json says",
        "nodes of known class have it in their set",
        "21 nodes of the audit sample are those that the chain sealed",
        "Audit sample of model sample-1 at alpha 0.1",
    ):
        assert words in done.stdout, done.stdout


def test_coverage_is_that_of_the_period_alone(packed, settings):
    rows = json.loads(read_pack(packed)["coverage.json"])["rows"]
    total = next(row for row in rows if row["slice"] == "total")
    assert total["evaluated"] == 120
    assert {row["name"] for row in rows if row["slice"] == "run"} == {"2", "3", "4"}


def test_the_pack_can_be_checked_unpacked_too(packed, script, tmp_path):
    for name, content in read_pack(packed).items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    assert check(tmp_path, script=script).returncode == 0
    (tmp_path / "report.html").write_text("all is well")
    done = check(tmp_path, "--json", script=script)
    assert done.returncode == 1
    assert json.loads(done.stdout)["problems"] == [
        "report.html is not the file that SHA256SUMS lists: it was changed."
    ]


def _other_set(files):
    rows = read_lines(files, "predictions.jsonl.gz")
    rows[50]["classes"] = ["retail", "business", "mule", "exchange"]
    return with_lines(files, "predictions.jsonl.gz", rows)


def _no_row(files):
    return with_lines(files, "predictions.jsonl.gz", read_lines(files, "predictions.jsonl.gz")[1:])


def _other_degree(files):
    rows = read_lines(files, "predictions.jsonl.gz")
    rows[7]["degree"] += 1
    return with_lines(files, "predictions.jsonl.gz", rows)


def _listed_another_way(files):
    rows = read_lines(files, "predictions.jsonl.gz")
    listed = next(row for row in rows if "lists" in row)
    other = next(row for row in rows if row["run"] == listed["run"] and "lists" not in row)
    other["lists"] = listed.pop("lists")
    return with_lines(files, "predictions.jsonl.gz", rows)


def _one_listed_less(files):
    rows = read_lines(files, "predictions.jsonl.gz")
    next(row for row in rows if "lists" in row).pop("lists")
    return with_lines(files, "predictions.jsonl.gz", rows)


def _other_label(files):
    rows = read_lines(files, "labels.jsonl.gz")
    rows[5]["label"] = "mule" if rows[5]["label"] != "mule" else "retail"
    return with_lines(files, "labels.jsonl.gz", rows)


def _no_labels_of_a_day(files):
    rows = read_lines(files, "labels.jsonl.gz")
    gone = rows[0]["noticed_ns"]
    return with_lines(files, "labels.jsonl.gz", [row for row in rows if row["noticed_ns"] != gone])


def _other_group(files):
    rows = read_lines(files, "groups.jsonl.gz")
    rows[3]["value"] = "moon"
    return with_lines(files, "groups.jsonl.gz", rows)


def _swapped_sample(files):
    """A node of the audit sample is another one, which has its mark."""
    rows = read_lines(files, "predictions.jsonl.gz")
    of_run = [row for row in rows if row["run"] == 3]
    inside = next(row for row in of_run if row["sampled"])
    outside = next(row for row in of_run if not row["sampled"])
    inside["sampled"], outside["sampled"] = False, True
    return with_lines(files, "predictions.jsonl.gz", rows)


def _no_sample(files):
    rows = [row | {"sampled": False} for row in read_lines(files, "predictions.jsonl.gz")]
    return with_lines(files, "predictions.jsonl.gz", rows)


def _better_sample(files):
    body = json.loads(files["coverage.json"])
    (row,) = (row for row in body["rows"] if row["slice"] == "sample")
    row["covered"] += 1
    return files | {"coverage.json": json.dumps(body).encode()}


def _better_coverage(files):
    body = json.loads(files["coverage.json"])
    body["rows"][0]["covered"] += 3
    return files | {"coverage.json": json.dumps(body).encode()}


def _no_run(files):
    rows = read_lines(files, "predictions.jsonl.gz")
    return with_lines(files, "predictions.jsonl.gz", [row for row in rows if row["run"] != 3])


def _other_entry(files):
    rows = read_lines(files, "chain.jsonl")
    place = next(i for i, row in enumerate(rows) if '"kind":"decided"' in (row["body"] or ""))
    rows[place]["body"] = rows[place]["body"].replace('"alpha":0.1', '"alpha":0.2')
    return with_lines(files, "chain.jsonl", rows)


def _no_entry(files):
    rows = read_lines(files, "chain.jsonl")
    return with_lines(files, "chain.jsonl", rows[:4] + rows[5:])


def _entries_swapped(files):
    rows = read_lines(files, "chain.jsonl")
    rows[3], rows[4] = rows[4], rows[3]
    return with_lines(files, "chain.jsonl", rows)


def _shorter_period(files):
    manifest = json.loads(files["manifest.json"])
    manifest["period"]["until_ns"] = manifest["period"]["from_ns"] + 1
    return files | {"manifest.json": json.dumps(manifest).encode()}


def _better_list(files):
    body = json.loads(files["lists.json"])
    body["rows"][0]["wrong"] -= 1
    return files | {"lists.json": json.dumps(body).encode()}


def _list_of_nobody(files):
    body = json.loads(files["lists.json"])
    body["rows"].append(body["rows"][0] | {"list": "made up"})
    return files | {"lists.json": json.dumps(body).encode()}


def _list_left_out(files):
    body = json.loads(files["lists.json"])
    del body["rows"][1]
    return files | {"lists.json": json.dumps(body).encode()}


def _promised_more(files):
    body = json.loads(files["lists.json"])
    body["rows"][0]["may_be_wrong"] = 0.5
    return files | {"lists.json": json.dumps(body).encode()}


def _chain_cut_at_its_end(files):
    return with_lines(files, "chain.jsonl", read_lines(files, "chain.jsonl")[:-1])


def _in_manifest(**values):
    def change(files):
        manifest = json.loads(files["manifest.json"]) | values
        return files | {"manifest.json": json.dumps(manifest).encode()}

    return change


def _promoted_by_somebody_else(files):
    rows = json.loads(files["promotions.json"])
    rows[0]["actor"] = rows[0]["actor"].replace('"user":', '"user":"otto","was":')
    return files | {"promotions.json": json.dumps(rows).encode()}


def _other_words(files):
    rows = json.loads(files["promotions.json"])
    rows[0]["words"] = "because it was better"
    return files | {"promotions.json": json.dumps(rows).encode()}


def _promotion_more(files):
    rows = json.loads(files["promotions.json"])
    rows.append(rows[0] | {"n": 2, "version": "sample-0"})
    return files | {"promotions.json": json.dumps(rows).encode()}


def _better_card(files):
    card = json.loads(files["model-cards/sample-1.json"])
    card["manifest"]["counts"]["train"] = 5_000
    return files | {"model-cards/sample-1.json": json.dumps(card).encode()}


def _better_card_and_manifest(files):
    files = _better_card(files)
    manifest = json.loads(files["model-cards/sample-1.json"])["manifest"]
    return files | {"model-cards/sample-1.manifest.json": json.dumps(manifest).encode()}


def _no_card(files):
    return {name: content for name, content in files.items() if "model-cards/sample-1" not in name}


def _card_of_nobody(files):
    return files | {"model-cards/sample-9.json": files["model-cards/sample-1.json"]}


EDITS = {
    "the end of the chain": (_chain_cut_at_its_end, "Manifest: entries of the chain's end is"),
    "the runs of the manifest": (_in_manifest(runs=[2, 3]), "Manifest: it lists 2 runs (2, 3)"),
    "the project of the manifest": (_in_manifest(project="other"), "Manifest: project other"),
    "who took a version into use": (_promoted_by_somebody_else, "in use: actor"),
    "why, in words": (_other_words, "in use: words is not what the chain sealed"),
    "a promotion more": (_promotion_more, "Change 2 of the version in use is not in the chain"),
    "a card": (_better_card, "has another manifest than the training of sample-1 sealed"),
    "a card and its manifest": (_better_card_and_manifest, "is not the manifest that the training"),
    "a card less": (_no_card, "Model sample-1 was trained, but its card"),
    "a card more": (_card_of_nobody, "sample-9.json is about a model that the chain has not"),
    "a list's wrong nodes": (_better_list, "wrong is"),
    "a list that no run decided": (_list_of_nobody, "the run decided no such list"),
    "a list left out": (_list_left_out, "not in lists.json"),
    "a list's promise": (_promised_more, "may_be_wrong is 0.2, lists.json says 0.5"),
    "a set": (_other_set, "its predictions are not those that the chain sealed"),
    "a prediction less": (_no_row, "39 predictions, but 40 were decided"),
    "a degree": (_other_degree, "its predictions are not those that the chain sealed"),
    "a list": (_listed_another_way, "its lists hold other nodes than the chain sealed"),
    "a listed node less": (_one_listed_less, "its lists hold other nodes than the chain sealed"),
    "a class": (_other_label, "they are not those that the chain sealed"),
    "the classes of a day": (_no_labels_of_a_day, "0 are in the pack, the chain has"),
    "a group": (_other_group, "its groups are not those that the chain sealed"),
    "a node of the audit sample": (_swapped_sample, "Run 3: its audit sample is not the one"),
    "the marks of the audit sample": (_no_sample, "Run 2: its audit sample is not the one"),
    "coverage of the audit sample": (_better_sample, "Coverage, sample of model"),
    "a number in coverage.json": (_better_coverage, "coverage.json says"),
    "a run less": (_no_run, "Run 3: 0 predictions, but 40 were decided"),
    "an entry": (_other_entry, "says of all entries before it is not so"),
    "an entry less": (_no_entry, "Chain: entry 6 stands where entry 5 belongs"),
    "two entries swapped": (_entries_swapped, "does not follow the entry before it"),
    "the period": (_shorter_period, "was not decided in its period"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_pack_is_named_although_its_hashes_were_made_again(
    packed, script, edit, tmp_path
):
    change, words = EDITS[edit]
    files = read_pack(packed)
    assert check(write_edited(files, tmp_path / "same.zip"), script=script).returncode == 0
    done = check(write_edited(change(files), tmp_path / "edited.zip"), script=script)
    assert done.returncode == 1, done.stdout
    assert any(words in line for line in done.stdout.splitlines() if "DOES NOT FIT" in line), (
        done.stdout
    )


def test_a_file_that_the_manifest_lists_otherwise_is_named(packed, script, tmp_path):
    """`write_edited` puts the manifest right; here the sums alone are."""
    files = read_pack(packed)
    manifest = json.loads(files["manifest.json"])
    del manifest["files"]["coverage.json"]
    manifest["files"]["lists.json"] = "0" * 64
    content = json.dumps(manifest).encode()
    sums = files["SHA256SUMS"].decode().splitlines()
    sums = [line for line in sums if not line.endswith("  manifest.json")]
    sums.append(f"{hashlib.sha256(content).hexdigest()}  manifest.json")
    files |= {"manifest.json": content, "SHA256SUMS": "\n".join(sums).encode()}
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    done = json.loads(check(tmp_path / "a.zip", "--json", script=script).stdout)
    assert [words.split(" is not")[0] for words in done["problems"]] == [
        "Manifest: coverage.json", "Manifest: lists.json",
    ]  # fmt: skip


def test_what_its_sum_alone_covers_is_said(packed, script):
    done = json.loads(check(packed, "--json", script=script).stdout)
    (said,) = (words for words in done["unchecked"] if words.startswith("The content of"))
    for name in ("report.html", "configuration.json", "in tables/", "in model-cards/"):
        assert name in said, said
    for name in ("promotions.json", "coverage.json", "predictions.jsonl.gz", "chain.jsonl"):
        assert name not in said, said


def test_a_pack_with_salted_keys_names_no_node_and_its_salt_is_apart(settings, script, tmp_path):
    done = run_pack(settings, tmp_path / "audit.zip", PackRequest(salted_keys=True))
    files = read_pack(tmp_path / "audit.zip")
    salt = (tmp_path / "audit.salt").read_text().strip()
    assert done.salt_file == str(tmp_path / "audit.salt")
    assert (tmp_path / "audit.salt").stat().st_mode & 0o777 == 0o600
    for name in files:
        content = b"\n".join(json.dumps(row).encode() for row in read_lines(files, name)) if (
            name.endswith("jsonl.gz")
        ) else files[name]  # fmt: skip
        assert b"account 1-" not in content, name
        assert salt.encode() not in content, name
    fits = check(tmp_path / "audit.zip", "--salt", str(tmp_path / "audit.salt"), script=script)
    assert "The salt is that of the chain" in fits.stdout
    (tmp_path / "other.salt").write_text("00" * 32)
    other = check(tmp_path / "audit.zip", "--salt", str(tmp_path / "other.salt"), script=script)
    assert other.returncode == 1


def test_what_is_no_pack_is_said_so(script, tmp_path):
    (tmp_path / "no.zip").write_text("nothing")
    done = check(tmp_path / "no.zip", script=script)
    assert done.returncode == 2
    assert "is no audit pack" in done.stderr


BAD_PERIODS = {
    (None, None, "2026Q5"): "--quarter '2026Q5'",
    (None, None, "summer"): "--quarter 'summer'",
    ("2026-10-01", "2026-09-30", None): "--from 2026-10-01 is after --to 2026-09-30",
    ("tomorrow", None, None): "--from 'tomorrow'",
    (None, "2026-02-30", None): "--to '2026-02-30'",
    ("2026-07-01", None, "2026Q3"): "--quarter together with",
}


@pytest.mark.parametrize("asked", BAD_PERIODS)
def test_a_period_that_cannot_be_is_refused_in_three_parts(asked):
    with pytest.raises(ConfigError) as raised:
        parse_period(*asked)
    assert BAD_PERIODS[asked] in raised.value.found
    assert raised.value.needed
    assert "ringfence report" in raised.value.next_step


def test_a_period_without_runs_is_refused_and_the_runs_on_record_are_named(settings, tmp_path):
    with pytest.raises(ConfigError, match="no run was decided") as raised:
        run_pack(settings, tmp_path / "a.zip", PackRequest(parse_period(None, None, "1999Q1")))
    assert "runs are on record from" in raised.value.found
    assert not list(tmp_path.iterdir())


def test_a_quarter_begins_and_ends_at_midnight_in_utc():
    third = parse_period(None, None, "2026q3")
    assert third.sentence == "from 2026-07-01 00:00:00Z and before 2026-10-01 00:00:00Z"
    last, first = parse_period(None, None, "2026Q4"), parse_period(None, None, "2027-Q1")
    assert (third.until_ns, last.until_ns) == (last.from_ns, first.from_ns)
