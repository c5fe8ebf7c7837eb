"""Run the example's DAG once with Airflow's own `test`, and print the state of each task."""

import json

import ringfence_dag

run = ringfence_dag.ringfence.test()
tasks = {task.task_id: [str(task.state), task.try_number] for task in run.get_task_instances()}
print("OUTCOME", json.dumps({"run": str(run.state), "tasks": tasks}))
