"""Agents: callers with a task each and a retry loop, as frameworks write them. An order in JSON on standard input:

  port, token, tool    where the tool is called
  log                  a file that gets a line for every request before it is made, and for what came of it
  go                   a file: nobody calls before it is there; that all are ready is a line in the log. null: at once
  callers              a list of
    name               who it is, in the log
    arguments          of the call
    key                the host program's idempotency key (a header), null: it has none
    again              "same": the loop keeps its key; "fresh": a new one for every try
    fresh_argument     a name: the model puts a fresh uuid into that argument, every time
    until              "success": asks again whatever it was told, but a refusal that says never; "answer": after silence and
                       broken answers alone
    pauses             seconds before each further try; as many tries as that, and one
    timeout            seconds for an answer
    delay              seconds before the first
"""
import http.client
import json
import os
import pathlib
import sys
import threading
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/ground"))
from ground import Agent, verdict

NEVER = ("denied/", "cap_exceeded/", "invalid/")
SUCCESS = ("done", "replayed", "already_done/")
ANSWERS = SUCCESS + NEVER + ("error", "rpc ", "delivery_uncertain/", "contended/", "unavailable/", "unauthorized/", "conflict/")


class Mcp:
    """One session for all callers of a process, made anew after a failure."""

    def __init__(self, order):
        self.order, self.lock, self.agent = order, threading.Lock(), None

    def session(self, timeout):
        with self.lock:
            if self.agent is None:
                agent = Agent.__new__(Agent)
                agent.__dict__.update(port=self.order["port"], token=self.order["token"], era="2025-11-25", session=None,
                                      capabilities={}, events=[], heard=[])
                status, messages = agent.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                    "protocolVersion": agent.era, "capabilities": {}, "clientInfo": {"name": "lab", "version": "1"}}},
                    timeout=timeout)
                if status != 200 or not messages:
                    raise ConnectionError(f"initialize: {status}")
                agent.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, timeout=timeout)
                agent.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, timeout=timeout)
                self.agent = agent
            return self.agent

    def forget(self, agent):
        with self.lock:
            if self.agent is agent:
                self.agent = None

    def call(self, arguments, key, timeout, asking):
        """What the caller was told, in a word, after `timeout` at the latest: bytes that trickle in do not prolong it."""
        told = []
        thread = threading.Thread(target=lambda: told.append(self._call(arguments, key, timeout, asking)), daemon=True)
        thread.start()
        thread.join(timeout + 0.3)
        return told[0] if told else "timeout"

    def _call(self, arguments, key, timeout, asking):
        agent = None
        try:
            agent = self.session(timeout)
            asking()
            message = {"jsonrpc": "2.0", "id": uuid.uuid4().int % 2**31, "method": "tools/call",
                       "params": {"name": self.order["tool"], "arguments": arguments}}
            status, messages = agent.post(message, timeout=timeout, headers={"Idempotency-Key": key} if key else None)
            for answer in messages:
                if answer.get("id") in (message["id"], None) and ("result" in answer or "error" in answer):
                    return verdict(answer)
            self.forget(agent)
            return f"http {status}"
        except TimeoutError:
            return "timeout"
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            self.forget(agent)
            return f"{'broken' if agent else 'no connection'}: {type(error).__name__}"


def log(order, line):
    fd = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, (json.dumps({"t": time.monotonic(), **line}) + "\n").encode())
    os.close(fd)


def wait_for_go(order):
    for _ in range(60_000):
        if not order["go"] or os.path.exists(order["go"]):
            return
        time.sleep(0.001)
    sys.exit("nobody said go")


def work(order, mcp, caller):
    name, arguments, key = caller["name"], dict(caller["arguments"]), caller["key"]
    wait_for_go(order)
    time.sleep(caller["delay"])
    for number, pause in enumerate([0, *caller["pauses"]]):
        time.sleep(pause)
        if number and key and caller["again"] == "fresh":
            key = uuid.uuid4().hex
        if caller["fresh_argument"]:
            arguments[caller["fresh_argument"]] = uuid.uuid4().hex
        about = {"caller": name, "key": key, "customer": arguments["customer"], "amount": arguments["amount"]}
        told = mcp.call(arguments, key, caller["timeout"], lambda: log(order, {"event": "ask", **about}))  # pylint: disable=cell-var-from-loop
        log(order, {"event": "told", "what": told, **about})
        if told.startswith(SUCCESS + NEVER) or (caller["until"] == "answer" and told.startswith(ANSWERS)):
            break


def main():
    order = json.load(sys.stdin)
    mcp = Mcp(order)
    try:
        mcp.session(10)
    except (OSError, http.client.HTTPException, ValueError):
        pass
    log(order, {"event": "ready", "pid": os.getpid()})
    threads = [threading.Thread(target=work, args=(order, mcp, caller)) for caller in order["callers"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(0)  # without those who still listen to what nobody waits for


main()
