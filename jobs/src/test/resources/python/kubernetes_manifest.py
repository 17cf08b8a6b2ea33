"""Holds manifests of the Spark operator to the operator's own models, and prints the arguments of their applications.

kubernetes_manifest.py FILE...: a JSON list, an entry a file: the arguments of Main.
"""

import datetime
import json
import sys

import yaml
from croniter import croniter
from kubeflow_spark_api.models.spark_v1beta2_scheduled_spark_application import SparkV1beta2ScheduledSparkApplication
from kubeflow_spark_api.models.spark_v1beta2_spark_application import SparkV1beta2SparkApplication

MODELS = {
    "SparkApplication": SparkV1beta2SparkApplication,
    "ScheduledSparkApplication": SparkV1beta2ScheduledSparkApplication,
}

arguments = []
for file in sys.argv[1:]:
    with open(file, encoding="utf-8") as stream:
        manifest = yaml.safe_load(stream)
    assert manifest["apiVersion"] == "sparkoperator.k8s.io/v1beta2", manifest["apiVersion"]
    # types are checked as it is read; a field that the operator does not know is lost on the way back
    there_and_back = MODELS[manifest["kind"]].from_dict(manifest).to_dict()
    assert there_and_back == manifest, f"{file}: {there_and_back}"
    spec = manifest["spec"]
    if "schedule" in spec:
        croniter(spec["schedule"], datetime.datetime(2026, 1, 1)).get_next()
        spec = spec["template"]
    assert spec["mainClass"] == "org.sparkfp4.jobs.Main", spec["mainClass"]
    arguments.append(spec["arguments"])
print(json.dumps(arguments))
