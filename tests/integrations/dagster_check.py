"""Materialize the example's asset once with its checks, and print what Dagster made of it."""

import json
from collections import Counter

import dagster as dg
import ringfence_assets as example

assert {str(one.name) for one in example.defs.schedules} == {"hourly"}
done = dg.materialize(
    [example.prediction_sets, example.coverage, example.integrity], raise_on_error=False
)
restarts = Counter(
    event.step_key for event in done.all_events if event.event_type_value == "STEP_RESTARTED"
)
tasks = {
    check.check_name: [
        "success" if check.passed else "failed",
        1 + restarts[f"prediction_sets_{check.check_name}"],
    ]
    for check in done.get_asset_check_evaluations()
}
materialized = done.asset_materializations_for_node("prediction_sets")
tasks["score"] = ["success" if materialized else "failed", 1 + restarts["prediction_sets"]]
print("OUTCOME", json.dumps({"run": str(done.success), "tasks": tasks}))
