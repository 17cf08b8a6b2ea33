"""Prints the tasks of a DAG's file as JSON, a list of {id, command, retries}, in the order in which they run.

airflow_dag.py FILE: imported by Airflow where there is Airflow, which checks the DAG then; else read from its syntax.
"""

import ast
import importlib.util
import json
import sys


def by_airflow(file):
    spec = importlib.util.spec_from_file_location("dag", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.dag.validate()
    tasks = module.dag.topological_sort()
    return [{"id": task.task_id, "command": task.bash_command, "retries": task.retries} for task in tasks]


def constant(node, names):
    """The value of an expression of constants, of names that have one, and of sums."""
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return constant(node.left, names) + constant(node.right, names)
    return ast.literal_eval(node)


def by_syntax(file):
    with open(file, encoding="utf-8") as stream:
        tree = ast.parse(stream.read(), file)
    names = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names[node.targets[0].id] = constant(node.value, names)
    (dag,) = [node for node in tree.body if isinstance(node, ast.With)]
    assert dag.items[0].optional_vars.id == "dag"
    tasks = {}
    order = None
    for node in dag.body:
        if isinstance(node, ast.Assign):
            given = {keyword.arg: keyword.value for keyword in node.value.keywords}
            tasks[node.targets[0].id] = {
                "id": constant(given["task_id"], names),
                "command": constant(given["bash_command"], names),
                "retries": constant(given["retries"], names),
            }
        else:
            assert isinstance(node.value.op, ast.RShift)
            order = [node.value.left.id, node.value.right.id]
    return [tasks[name] for name in order]


print(json.dumps((by_airflow if importlib.util.find_spec("airflow") else by_syntax)(sys.argv[1])))
