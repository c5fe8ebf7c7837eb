"""`ringfence doctor`: every mistake with its fix."""

import json


def test_doctor_names_every_mistake_with_its_fix(ringfence, project, graph):
    folder, env = project
    ringfence("sample", "--nodes", "600", cwd=folder, env=env)
    ringfence("migrate", cwd=folder, env=env)
    wrong = {
        "RINGFENCE_GRAPH_KEY": "identity",
        "RINGFENCE_GRAPH_FEATURES": "kind",
        "RINGFENCE_GRAPH_CLASS_PROPERTY": "colour",
        "RINGFENCE_GRAPH_TIME_KIND": "local",
        "RINGFENCE_GRAPH_RELATIONSHIPS": '[{"type": "OWES"}]',
        "RINGFENCE_SCHEDULE_SCORE": "0 0 31 2 *",
    }
    found = json.loads(ringfence("doctor", "--json", cwd=folder, env=env | wrong, code=1).stdout)
    said = " ".join(f"{one['text']} -> {one['fix']}" for one in found if one["level"] != "ok")
    for sentence in (
        "identity",
        "features needs a list of numbers",
        "colour",
        "time_kind",
        "OWES",
        "PAID",
        "a time that never comes",
    ):
        assert sentence in said
    nowhere = json.loads(
        ringfence(
            "doctor", "--json", cwd=folder, env=env | {"RINGFENCE_GRAPH_LABEL": "Akkount"}, code=1
        ).stdout
    )
    assert any("Account (600)" in one["text"] for one in nowhere)
