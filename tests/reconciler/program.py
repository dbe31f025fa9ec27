"""An exec look-up of the tests' own. Reads the ledger file that it is given, and misbehaves as the call's argument says."""
import json
import os
import signal
import subprocess
import sys
import time

asked = json.load(sys.stdin)
mode = (asked["arguments"] or {}).get("mode", "")
if mode == "exit":
    print(json.dumps({"verdict": "absent"}))
    sys.exit(3)
if mode == "signal":
    print(json.dumps({"verdict": "absent"}), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
if mode == "hang":
    subprocess.Popen(["sleep", "600"])  # pylint: disable=consider-using-with
    print(json.dumps({"verdict": "absent"}), flush=True)
    time.sleep(600)
if mode == "leave":
    # What it leaves behind holds its output open.
    subprocess.Popen(["sleep", "600"])  # pylint: disable=consider-using-with
if mode == "flood":
    for _ in range(64):
        sys.stdout.write(" " * 65536)
if mode == "prose":
    print("there is no such payment")
    sys.exit(0)
if mode == "inside":
    print(json.dumps({"verdict": "happened", "result": {
        "descriptors": sorted(name for name in os.listdir("/proc/self/fd")
                              if os.path.exists(f"/proc/self/fd/{name}")),
        "variables": sorted(os.environ), "secret": os.environ.get("LEDGER_PASSWORD"), "asked": asked,
        "arguments": sys.argv[1:]}}))
    sys.exit(0)
with open(sys.argv[1], encoding="utf-8") as file:
    rows = [json.loads(line) for line in file]
mine = [row for row in rows if row["ref"] == asked["reference"]]
if mine:
    print(json.dumps({"verdict": "happened", "reference": f"row {mine[0]['row']}", "amount": mine[0]["amount"],
                      "result": {"row": mine[0]["row"]}}))
else:
    print(json.dumps({"verdict": "absent", "detail": "no such row"}))
