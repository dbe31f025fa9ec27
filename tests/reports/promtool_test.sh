#!/usr/bin/env bash
# promtool over what deploy/ gives to Prometheus and Grafana: the alert rules, their unit tests, and every expression of the
# dashboard, as rules of their own. Skipped (77) where promtool is not on the PATH; it comes with Debian's package prometheus.
set -euo pipefail
command -v promtool >/dev/null || { echo "SKIPPED: promtool is not on the PATH (Debian: package prometheus)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GOMAXPROCS=1

promtool check rules deploy/prometheus-alerts.yml
promtool test rules tests/reports/alerts_test.yml tests/reports/alerts_of_days_test.yml

python3 - "$folder/dashboard.yml" <<'PYTHON'
import json, sys

# What Grafana fills in before it asks.
FILLED = {"$__rate_interval": "5m", "$tenant": "acme|zenith"}
rules = []
for panel in json.load(open("deploy/grafana-dashboard.json"))["panels"]:
    for target in panel.get("targets", []):
        expr = target["expr"]
        for name, value in FILLED.items():
            expr = expr.replace(name, value)
        assert "$" not in expr, f"{panel['title']}: {expr}"
        rules.append({"record": f"panel:{panel['id']}:{target['refId']}", "expr": expr})
assert len(rules) > 20, len(rules)
# JSON is YAML.
json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, open(sys.argv[1], "w"))
PYTHON
promtool check rules "$folder/dashboard.yml"
