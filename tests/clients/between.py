"""Stands between the gateway and a real server on stdio, and does to one tools/call what an order in a file says.

usage: between.py FOLDER NAME COMMAND...

FOLDER/NAME.calls gets a line for each tools/call that reached the server. FOLDER/NAME.fault, if it is there when a
tools/call comes, is taken (renamed) and obeyed:
  kill          let the server work, keep its answer, die with it
  kill_before   let the server have the request and kill it at once
  cut           pass on the first half of its answer, then die with it
  hang          never answer
  late SECONDS  answer that much later
"""
import json
import os
import subprocess
import sys
import threading
import time

folder, name, command = sys.argv[1], sys.argv[2], sys.argv[3:]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
faults = {}  # JSON-RPC id -> what is to be done with the answer


def die():
    server.kill()
    server.wait()
    os._exit(1)


def take_fault():
    try:
        os.rename(f"{folder}/{name}.fault", f"{folder}/{name}.taken")
    except FileNotFoundError:
        return []
    with open(f"{folder}/{name}.taken", encoding="utf-8") as file:
        return file.read().split()


def requests():
    for line in sys.stdin.buffer:
        message = json.loads(line)
        fault = []
        if message.get("method") == "tools/call":
            fault = take_fault()
            with open(f"{folder}/{name}.calls", "ab", buffering=0) as calls:
                calls.write(line)
            if fault:
                faults[message["id"]] = fault
        server.stdin.write(line)
        server.stdin.flush()
        if fault == ["kill_before"]:
            die()
    server.stdin.close()


def answer(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


threading.Thread(target=requests, daemon=True).start()
for line in server.stdout:
    fault = faults.pop(json.loads(line).get("id"), []) if faults else []
    if not fault:
        answer(line)
    elif fault[0] == "late":
        threading.Timer(float(fault[1]), answer, [line]).start()
    elif fault[0] == "cut":
        answer(line[:len(line) // 2])
        time.sleep(0.1)
        die()
    elif fault[0] in ("kill", "kill_before"):
        die()
os._exit(server.wait())
