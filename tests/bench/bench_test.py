"""A short run of the benchmark: both systems do the work, and the JSON has the form that README and CI readers use."""

import json
import os
import subprocess
import sys
import tempfile

WORKS = ("spread", "hot")
CALLERS = (4, 8)
POOLS = (1, 32)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        figures = os.path.join(folder, "bench.json")
        subprocess.run(
            [os.path.join(os.environ["TALLY_BIN"], "tally-bench"),
             "--rounds", "2", "--seconds", "0.5", "--warm-up", "0.1", "--permits", "20", "--json", figures,
             "--callers", ",".join(map(str, CALLERS)), "--pool", ",".join(map(str, POOLS))],
            check=True, timeout=280)
        with open(figures, encoding="utf-8") as file:
            report = json.load(file)

    assert report["cores"] == os.cpu_count(), report["cores"]
    assert report["rounds"] == 2, report["rounds"]
    wanted = {(system, work, callers, pool) for work in WORKS for callers in CALLERS
              for system, pools in (("tallyd", (None,)), ("naive", POOLS)) for pool in pools}
    runs = {(run["system"], run["work"], run["callers"], run.get("pool")): run for run in report["runs"]}
    assert set(runs) == wanted, set(runs) ^ wanted
    for name, run in runs.items():
        assert run["pairs_per_s"] > 0 and 0 < run["p50_ms"] <= run["p99_ms"] and run["contended"] >= 0, (name, run)

    cells = {f"{work}_{callers}" for work in WORKS for callers in CALLERS}
    assert set(report["ratios"]) == cells and set(report["ratios_pool32"]) == cells, report
    for work in WORKS:
        for callers in CALLERS:
            ours = runs["tallyd", work, callers, None]["pairs_per_s"]
            plain = {pool: runs["naive", work, callers, pool]["pairs_per_s"] for pool in POOLS}
            cell = f"{work}_{callers}"
            assert abs(report["ratios"][cell] - ours / max(plain.values())) < 0.02, (cell, report)
            assert abs(report["ratios_pool32"][cell] - ours / plain[32]) < 0.02, (cell, report)


if __name__ == "__main__":
    sys.exit(main())
