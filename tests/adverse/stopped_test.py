"""A gateway stopped between the grant and the send, for longer than send window, lease and the operator's verdict that
nothing happened; another gateway then carries the call out. Woken, the first sends nothing.

usage: stopped_test.py stdio|http     the upstream's transport

A pause between the last look at the clock and the write itself cannot be fenced by anybody; so the stops are at every
step before `upstream.send`, and at that only after it (what it sent is then already in the ledger).
"""
import os
import pathlib
import signal
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/ground"))
from ground import Ground, Wire, Agent, children_of, state_of, verdict, wait_for

TRANSPORT = sys.argv[1]
COST = 10
GRANT = f'cap = 100\ncost = {{ fixed = {COST} }}\nlease = "3s"\nsend_within = "2s"'
STEPS = [("before", "journal.write", 1), ("after", "journal.write", 1), ("before", "journal.write", 2),
         ("after", "journal.write", 2), ("before", "journal.sync", 1), ("after", "journal.sync", 1),
         ("before", "upstream.connect", 1), ("after", "upstream.connect", 1)]


class Stopped:
    def __init__(self, ground, upstream):
        self.ground = ground
        self.permit, self.token = ground.mint({"led__append": GRANT})
        self.other = ground.add_gateway("other", upstream).start()
        self.other_agent = Agent(self.other.port, self.token)

    def call(self, agent, key, arguments=None):
        """Started, not waited for."""
        answers = []

        def ask():
            try:
                answers.append(agent.call("led__append", arguments or {"text": key}, key=key, timeout=90))
            except Exception as error:  # pylint: disable=broad-except  # judged by whoever looks at answers
                answers.append({"error": {"code": 0, "message": repr(error)}})

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        return thread, answers

    def judged_and_done_by_another(self, key):
        call = wait_for(f"{key} is parked", lambda: self.ground.parked(self.permit).get(key))
        self.ground.check(f"{key}: nothing was sent", self.ground.effects(key), 0)
        self.ground.resolve(call, "not-happened")
        answer = self.other_agent.call("led__append", {"text": key}, key=key)
        self.ground.check(f"{key}: another gateway does it", verdict(answer), "done")
        self.ground.check(f"{key}: its attempt", len(self.ground.calls(self.permit)[key]["attempts"]), 2)

    def woken(self, key, thread, answers, gateway):
        thread.join(90)
        self.ground.check(f"{key}: its agent is answered", [verdict(a) for a in answers],
                          lambda v: len(v) == 1 and v[0] != "done")
        # The gateway has done all that it was about to do when it can do something else.
        agent = Agent(gateway.port, self.token)
        self.ground.check(f"{key}: it goes on", verdict(agent.call("led__append", {"text": key + "-on"})), "done")
        self.ground.check(f"{key}: effects", self.ground.effects(key), 1)
        self.ground.check(f"{key}: the call", self.ground.calls(self.permit)[key]["state"], "SUCCEEDED")


def at_each_step(stopped, upstream):
    ground, reached = stopped.ground, 0
    for when, kind, number in STEPS:
        if TRANSPORT == "stdio" and kind == "upstream.connect":
            continue
        key = f"{when}-{kind}-{number}"
        gateway = ground.add_gateway(key.replace(".", "-"), upstream)
        hold = ground.work / f"hold-{key}"
        hold.mkdir()
        gateway.start(hold)
        agent = Agent(gateway.port, stopped.token)
        agent.request("tools/list")
        (hold / "order.new").write_text(f"stop {when} {kind} {number}\n", encoding="ascii")
        (hold / "order.new").rename(hold / "order")
        thread, answers = stopped.call(agent, key)
        pid = gateway.process.pid
        wait_for(f"{key}: stopped", lambda: (hold / "obeyed").exists() and state_of(pid) == "T")  # pylint: disable=cell-var-from-loop
        # `granted` and `sending` are written together, or one by one: then the second write is the outcome's.
        if "upstream.send" not in (hold / "trace").read_text(encoding="ascii"):
            reached += 1
            stopped.judged_and_done_by_another(key)
            gateway.signal(signal.SIGCONT)
            stopped.woken(key, thread, answers, gateway)
        gateway.signal(signal.SIGCONT)
        thread.join(90)
        gateway.stop()
    ground.check("steps before the send", reached, lambda n: n >= 4)


def with_the_grant_in_its_socket(stopped, upstream):
    """Stopped while it waits for tallyd, whose grant then lies in the socket until it wakes."""
    ground = stopped.ground
    wire = Wire(ground.path("wire.sock"), ground.socket)
    gateway = ground.add_gateway("wire", upstream, server=wire.path).start()
    agent = Agent(gateway.port, stopped.token)
    agent.request("tools/list")
    wire.down.clear()
    thread, answers = stopped.call(agent, "socket")
    wait_for("granted", lambda: ground.calls(stopped.permit).get("socket", {}).get("state") == "AUTHORIZED")
    gateway.signal(signal.SIGSTOP)
    wait_for("stopped", lambda: state_of(gateway.process.pid) == "T")
    wire.down.set()
    stopped.judged_and_done_by_another("socket")
    gateway.signal(signal.SIGCONT)
    stopped.woken("socket", thread, answers, gateway)


def with_a_full_pipe(stopped, upstream):
    """The tool server is stopped, and its pipe so full that not a byte more goes in: a call whose send window passes
    meanwhile was never sent, and is not when there is room again."""
    ground = stopped.ground
    gateway = ground.add_gateway("full", upstream + 'timeout = "1s"\n').start()
    agent = Agent(gateway.port, stopped.token)
    agent.request("tools/list")
    children = children_of(gateway.process.pid)
    ground.check("one upstream process", len(children), 1)
    os.kill(children[0], signal.SIGSTOP)
    # 16 pages are a pipe's room, and this line takes all but some bytes of them.
    first, answers = stopped.call(agent, "fills", {"text": "fills", "more": "x" * (65536 - 200)})
    first.join(90)
    second, more = stopped.call(agent, "waits", {"text": "waits", "more": "y" * 300})
    second.join(90)
    ground.check("what filled the pipe may be carried out", [verdict(a) for a in answers], ["delivery_uncertain/NO_ANSWER"])
    ground.check("what waited was not sent", [verdict(a) for a in more], ["unavailable/NOT_SENT"])
    wait_for("which tallyd is told", lambda: ground.calls(stopped.permit)["waits"]["state"] != "AUTHORIZED")
    ground.check("it is free again", ground.calls(stopped.permit)["waits"]["state"], "RELEASED")
    other = stopped.other_agent.call("led__append", {"text": "waits", "more": "y" * 300}, key="waits")
    ground.check("another gateway does it", verdict(other), "done")
    os.kill(children[0], signal.SIGCONT)
    wait_for("the late answer is committed", lambda: ground.calls(stopped.permit)["fills"]["state"] == "SUCCEEDED")
    agent.call("led__append", {"text": "full-on"})
    ground.check("effects", [ground.effects(text) for text in ("fills", "waits", "full-on")], [1, 1, 1])


def main():
    with Ground() as ground:
        upstream = ground.stdio_upstream() if TRANSPORT == "stdio" else ground.http_upstream()
        stopped = Stopped(ground, upstream)
        with_the_grant_in_its_socket(stopped, upstream)
        at_each_step(stopped, upstream)
        if TRANSPORT == "stdio":
            with_a_full_pipe(stopped, upstream)
        shown = ground.run_tally("permit", "show", stopped.permit)
        done = len(ground.effects())
        ground.check("slots are what was done", shown["grants"][0]["cap"]["used"], done)
        ground.check("money is what was done", (shown["budget"]["held"], shown["budget"]["spent"]), (0, done * COST))
    return ground.report(f"stopped, {TRANSPORT}")


sys.exit(main())
