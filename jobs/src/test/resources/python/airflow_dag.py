"""Prints the tasks of a DAG's file as JSON, a list of {id, command, retries}, in the order in which they run.

airflow_dag.py FILE: imported by Airflow, which checks the DAG then.
"""

import importlib.util
import json
import os
import sys
import tempfile

with tempfile.TemporaryDirectory() as home:
    os.environ["AIRFLOW_HOME"] = home
    spec = importlib.util.spec_from_file_location("dag", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.dag.validate()
    tasks = module.dag.topological_sort()
    print(json.dumps([{"id": task.task_id, "command": task.bash_command, "retries": task.retries} for task in tasks]))
