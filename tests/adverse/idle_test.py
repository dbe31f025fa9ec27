"""5,000 idle event streams, each with a session of its own, on one gateway that was started with the usual 1,024
descriptors: memory bounded, and calls go through as before."""
import os
import pathlib
import resource
import socket
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/ground"))
from ground import Agent, Ground, skip, verdict
from bad_input_test import bound_kb, head_of

STREAMS = 5000
SPARE = 200


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < STREAMS + SPARE:
        skip(f"{hard} descriptors are allowed, and {STREAMS + SPARE} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (STREAMS + SPARE, hard))
    with Ground() as ground:
        _, token = ground.mint({"led__append": 'cap = 100000\ncost = "none"'})
        _, idle_token = ground.mint({"elsewhere__x": 'cap = 1\ncost = "none"'})
        gateway = ground.add_gateway("idle", ground.stdio_upstream())
        gateway.start(limit=min(1024, soft))
        agent = Agent(gateway.port, token)
        before = gateway.rss_kb()
        streams = []
        for i in range(STREAMS):
            idle = Agent(gateway.port, idle_token)
            client = socket.create_connection(("127.0.0.1", gateway.port), timeout=60)
            client.sendall(b"GET /mcp HTTP/1.1\r\n" + head_of(idle, Accept="text/event-stream") + b"\r\n")
            got = client.recv(4096)
            if not ground.check(f"stream {i}", got[:15], b"HTTP/1.1 200 OK"):
                break
            streams.append(client)
            if i % 500 == 0:
                answer = agent.call("led__append", {"text": f"idle-{i}"})
                ground.check(f"a call beside {i} streams", (verdict(answer), ground.effects(f"idle-{i}")), ("done", 1))
        with open(f"/proc/{gateway.process.pid}/limits", encoding="ascii") as limits:
            ground.check("descriptors", limits.read(), lambda text: "Max open files            1024" not in text)
        upstream = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == gateway.process.pid]
        for pid in upstream:
            with open(f"/proc/{pid}/limits", encoding="ascii") as limits:
                ground.check("an upstream's descriptors", limits.read(), lambda text: "Max open files            1024 " in text)
        ground.check("upstream processes", len(upstream), 1)
        most = gateway.rss_kb()
        ground.check("memory, kB", most, lambda kb: kb < bound_kb(ground))
        print(f"{len(streams)} idle streams: {before // 1024} MB before, {most // 1024} MB with them, "
              f"{(most - before) * 1024 // max(1, len(streams))} bytes each", flush=True)
        for client in streams:
            client.close()
        answer = agent.call("led__append", {"text": "after"})
        ground.check("a call after them", (verdict(answer), ground.effects("after")), ("done", 1))
    return ground.report("idle streams")


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except (OSError, ValueError):
        return -1


sys.exit(main())
