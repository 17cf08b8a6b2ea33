"""Reads metrics as Prometheus does, from standard input, and prints them as a JSON object: name, value."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

print(json.dumps({sample.name: sample.value
                  for family in text_string_to_metric_families(sys.stdin.read())
                  for sample in family.samples}))
