"""Parses a file of /etc/cron.d: prints its variables and its one entry as JSON.

cron_entry.py FILE
"""

import datetime
import json
import re
import sys

from croniter import croniter

variables = {}
entries = []
with open(sys.argv[1], encoding="utf-8") as stream:
    text = stream.read()
assert text.endswith("\n"), "cron reads no last line without its end"
for line in text.splitlines():
    if not line.strip() or line.startswith("#"):
        continue
    variable = re.fullmatch(r"([A-Za-z_]\w*)=(.*)", line)
    if variable:
        variables[variable[1]] = variable[2]
        continue
    fields = line.split(None, 6)  # five of time, user, command
    assert len(fields) == 7, line
    croniter(" ".join(fields[:5]), datetime.datetime(2026, 1, 1)).get_next()
    assert "%" not in fields[6], "cron takes % for the end of a line"
    entries.append({"user": fields[5], "command": fields[6]})
assert len(entries) == 1, entries
print(json.dumps({"variables": variables, "user": entries[0]["user"], "command": entries[0]["command"]}))
