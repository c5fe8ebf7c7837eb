"""Run the example's flow once against Prefect's own test server, and print the tasks' states."""

import asyncio
import json

import ringfence_flow
from prefect.client.orchestration import get_client
from prefect.testing.utilities import prefect_test_harness


async def read_tasks():
    async with get_client() as client:
        runs = await client.read_task_runs()
    return {run.name.partition("-")[0]: [run.state.type.value, run.run_count] for run in runs}


with prefect_test_harness(server_startup_timeout=900):  # however busy the machine is
    state = ringfence_flow.ringfence_flow(return_state=True)
    tasks = asyncio.run(read_tasks())
print("OUTCOME", json.dumps({"run": state.type.value, "tasks": tasks}))
