"""A short run of ./dev bench --gateway without the peers: every case is answered as it should be, and the JSON has the
form that its readers expect."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SYSTEMS = ("direct", "gateway-http", "gateway-stdio", "gateway-reads")
CALLERS = (1, 5)
RUN = pathlib.Path(__file__).resolve().parents[2] / "bench/gateway/run.py"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        figures = os.path.join(folder, "bench.json")
        environment = os.environ | {"PATH": os.environ["TALLY_BIN"] + ":" + os.environ["PATH"]}
        subprocess.run(
            [sys.executable, RUN, "--rounds", "1", "--seconds", "0.5", "--warm-up", "0.1", "--json", figures,
             "--callers", ",".join(map(str, CALLERS)), "--system", ",".join(SYSTEMS)],
            check=True, timeout=280, env=environment)
        with open(figures, encoding="utf-8") as file:
            report = json.load(file)

    assert report["cores"] == os.cpu_count() and report["rounds"] == 1, report
    runs = {(run["system"], run["callers"]): run for run in report["runs"]}
    assert set(runs) == {(system, callers) for system in SYSTEMS for callers in CALLERS}, set(runs)
    for name, run in runs.items():
        assert run["calls_per_s"] > 0 and 0 < run["p50_ms"] <= run["p99_ms"], (name, run)
        assert run["memory_mib"] > 0 and run["failed"] == 0, (name, run)
        assert ("tallyd_memory_mib" in run) == name[0].startswith("gateway"), (name, run)
    assert report["ratios"] == {}, report


if __name__ == "__main__":
    sys.exit(main())
