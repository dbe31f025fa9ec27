"""SIGKILL of the gateway at every step from Authorize to the agent's answer, and a new process with the same journal.

usage: killed_test.py stdio|http|rounds|keyed
  stdio, http   the upstream's transport
  rounds        calls of 2026-07-28 in which the tool asks for input first
  keyed         a tool with replay = "keyed" that loses its first answer, so that each call is sent twice under one key

Promised: nothing is sent twice; what the journal has is delivered, or the lease ends; every call ends answered, refused or
parked, and `tally parked list` has the parked ones; slots and money come out at what the ledger of effects says.
"""
import pathlib
import signal
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/ground"))
from ground import KEY, MODERN, Agent, Ground, Wire, UPSTREAM, text_of, verdict, wait_for

TRANSPORT = sys.argv[1]
COST = 10
# Short, so that a lease can be waited for; the send window is shorter still, or NOT_SENT would come too late.
LEASE = "15s" if TRANSPORT == "keyed" else "4s"  # what is sent again must be answered within it
GRANT = f'cap = 1000\ncost = {{ fixed = {COST} }}\nlease = "{LEASE}"\nsend_within = "2s"'
KINDS = ["tallyd.send", "journal.write", "journal.sync", "upstream.connect", "upstream.send", "audit.write",
         "agent.send"]
EVENTS_MAX = 25  # of one kind in one call; more is a finding


def connect(port, token):
    if TRANSPORT == "rounds":
        return Agent(port, token, MODERN, {"elicitation": {}})
    return Agent(port, token)


def act(text):
    return {"text": text, **{"rounds": {"ask": 1}, "keyed": {"then": "die once"}}.get(TRANSPORT, {})}


def call(agent, arguments, key=None):
    """With all that the tool asks for in between."""
    answer = agent.call("led__append", arguments, key=key)
    for _ in range(3):
        result = answer.get("result", {})
        if result.get("resultType") != "input_required":
            break
        meta = {"_meta": {KEY: key}} if key else {}
        answer = agent.request("tools/call", {
            "name": "led__append", "arguments": arguments, "requestState": result["requestState"],
            "inputResponses": {"name": {"action": "accept", "content": {"who": "Ada"}}}, **meta})
    return answer


class Sweep:
    def __init__(self, ground, gateway):
        self.ground, self.gateway = ground, gateway
        self.permit, self.token = ground.mint({"led__append": GRANT})
        self.keys = {}  # key -> where the gateway was killed
        self.reached = {}  # kind -> how many of its events a call has
        self.runs = 0

    def start(self):
        """A new process, which takes over what the one before left, and an agent with a session and an upstream."""
        self.runs += 1
        hold = self.ground.work / f"hold-{self.runs}"
        hold.mkdir()
        self.gateway.start(hold)
        agent = connect(self.gateway.port, self.token)
        agent.request("tools/list")
        return hold, agent

    def kill_at(self, when, kind, number):
        """True if the call got that far."""
        hold, agent = self.start()
        key = f"{when}-{kind}-{number}"
        self.keys[key] = (f"killed {when} {kind} {number}", act(key))
        (hold / "order.new").write_text(f"kill {when} {kind} {number}\n", encoding="ascii")
        (hold / "order.new").rename(hold / "order")
        try:
            answer = call(agent, act(key), key)
        except OSError:
            answer = None
        except Exception as error:  # pylint: disable=broad-except  # an answer that was cut in the middle
            answer = None if (hold / "obeyed").exists() else error
        # A stream that had begun ends without an answer.
        if not answer and (hold / "obeyed").exists():
            answer = None
        if answer is not None:
            # On a slow machine the second answer may come too late as well.
            self.ground.check(f"{key}: answered", verdict(answer), lambda v: v == "done" or (
                TRANSPORT == "keyed" and v == "delivery_uncertain/NO_ANSWER"))
        process = self.gateway.process
        try:
            # What comes after the answer, the journal's last word, is waited for a little: none of it may be missed.
            process.wait(60 if answer is None else 1)
        except Exception:  # pylint: disable=broad-except
            pass
        reached = (hold / "obeyed").exists()
        if process.poll() is None:
            self.gateway.kill()
        self.ground.check(f"{key}: how it ended", process.returncode, -signal.SIGKILL)
        return reached

    def run(self):
        for kind in KINDS:
            for when in ("before", "after"):
                for number in range(1, EVENTS_MAX + 1):
                    if not self.kill_at(when, kind, number):
                        break
                    self.reached[kind] = max(self.reached.get(kind, 0), number)


def settle(ground, gateway, permit, token, keys):
    """What must hold of all calls once their leases are over; `keys`: key, which is its effect's text too -> its story and
    its arguments."""
    gateway.start()
    calls = wait_for("no lease is left", lambda: (c := ground.calls(permit)) is not None and all(
        call["state"] != "AUTHORIZED" for call in c.values()) and c, 60)
    # NOT_SENT waits for the send window; by now it has been said or refused.
    agent = connect(gateway.port, token)
    parked = ground.parked(permit)
    tally = {}
    for key, (story, arguments) in keys.items():
        effects, state = ground.effects(key), calls[key]["state"] if key in calls else None
        tally[(effects, state)] = tally.get((effects, state), 0) + 1
        ground.check(f"{story}: effects and state", (effects, state), lambda pair: pair in (
            (0, None), (0, "RELEASED"), (0, "UNCERTAIN"), (1, "UNCERTAIN"), (1, "SUCCEEDED")))
        ground.check(f"{story}: parked", key in parked, state == "UNCERTAIN")
        wanted = {None: "done", "RELEASED": "done", "SUCCEEDED": "replayed"}.get(state)
        again = call(agent, arguments, key)
        ground.check(f"{story}: the same key again", verdict(again),
                     wanted or (lambda v: v.startswith("delivery_uncertain/")))
        fresh = call(agent, arguments)
        ground.check(f"{story}: a fresh key", verdict(fresh),
                     "delivery_uncertain/INTENT_PENDING" if state == "UNCERTAIN" else "replayed")
        ground.check(f"{story}: effects after that", ground.effects(key), effects if state == "UNCERTAIN" else 1)
        if state != "UNCERTAIN":
            ground.check(f"{story}: the answer", text_of(again), f"done: {key}")
    for key, one in parked.items():
        ground.resolve(one, "happened" if ground.effects(key) else "not-happened")
    ground.check("nothing is parked any more", ground.parked(permit), {})
    shown = ground.run_tally("permit", "show", permit)
    done = sum(ground.effects(key) for key in keys)
    cap, budget = shown["grants"][0]["cap"], shown["budget"]
    ground.check("slots are what was done", cap["used"], done)
    ground.check("money is what was done", (budget["held"], budget["spent"]), (0, done * COST))
    ground.check("no call is open", shown.get("open_calls", 0), 0)
    # Every (effects, state) that a crash can leave, and how often it was left.
    return {f"{effects} effects, {state}": count for (effects, state), count in tally.items()}


def sweep(ground, upstream):
    gateway = ground.add_gateway("sweep", upstream)
    swept = Sweep(ground, gateway)
    swept.run()
    for kind in KINDS:
        if kind == "upstream.connect" and TRANSPORT != "http":
            continue
        ground.check(f"steps of kind {kind}", swept.reached.get(kind, 0), lambda n: 1 <= n < EVENTS_MAX)
    ends = settle(ground, gateway, swept.permit, swept.token, swept.keys)
    print(f"{len(swept.keys)} kills at {swept.reached}: {ends}", flush=True)
    # The sweep means nothing if it never met the states in question. (RELEASED is rare: `granted` and `sending` are mostly
    # written together.)
    for end in ("0 effects, UNCERTAIN", "1 effects, UNCERTAIN", "1 effects, SUCCEEDED"):
        ground.check(f"met: {end}", ends.get(end, 0), lambda n: n > 0)
    gateway.stop()


def by_wire(ground, upstream):
    """The steps where the gateway waits for somebody, held there for as long as it takes to look around."""
    wire = Wire(ground.path("wire.sock"), ground.socket)
    gateway = ground.add_gateway("wire", upstream, server=wire.path)
    permit, token = ground.mint({"led__append": GRANT})
    keys, threads = {}, []

    def begin(key, story, **arguments):
        keys[key] = (story, {"text": key, **arguments})
        gateway.start()
        agent = Agent(gateway.port, token)
        agent.request("tools/list")

        def call():
            try:
                agent.call("led__append", keys[key][1], key=key)
            except Exception:  # pylint: disable=broad-except  # the gateway is killed under it
                pass

        threads.append(threading.Thread(target=call, daemon=True))
        return threads[-1].start

    def state(key):
        return ground.calls(permit).get(key, {}).get("state")

    for late in (False, True):
        key = f"asked-{late}"
        go = begin(key, f"killed with Authorize on its way, which arrives later: {late}")
        wire.up.clear()
        seen = wire.seen["up"]
        go()
        wait_for("Authorize is asked", lambda: wire.seen["up"] > seen)  # pylint: disable=cell-var-from-loop
        gateway.kill()
        ground.check("nothing is decided", state(key), None)
        if late:
            wire.up.set()
        else:
            wire.lose()

        key = f"decided-{late}"
        go = begin(key, f"killed before the grant came, which arrives later: {late}")
        wire.down.clear()
        go()
        wait_for("the grant is on its way", lambda: state(key) == "AUTHORIZED")  # pylint: disable=cell-var-from-loop
        gateway.kill()
        if late:
            wire.down.set()
        else:
            wire.lose()

    until = ground.path("until-1")
    go = begin("sent", "killed after send, before the answer", then="await", until=until)
    go()
    wait_for("it was carried out", lambda: ground.effects("sent"))
    gateway.kill()
    open(until, "w", encoding="ascii").close()

    for late in (False, True):
        key, until = f"answered-{late}", ground.path(f"until-2-{late}")
        go = begin(key, f"killed with the outcome in the journal and Commit on its way, which arrives later: {late}",
                   then="await", until=until)
        go()
        wait_for("it was carried out", lambda: ground.effects(key))  # pylint: disable=cell-var-from-loop
        wire.up.clear()
        seen = wire.seen["up"]
        open(until, "w", encoding="ascii").close()
        wait_for("Commit is said", lambda: wire.seen["up"] > seen)  # pylint: disable=cell-var-from-loop
        gateway.kill()
        ground.check("the outcome is not known yet", state(key), "AUTHORIZED")
        if late:
            wire.up.set()
        else:
            wire.lose()

        key, until = f"committed-{late}", ground.path(f"until-3-{late}")
        go = begin(key, f"killed after Commit, before the agent's answer; tallyd's arrives later: {late}",
                   then="await", until=until)
        go()
        wait_for("it was carried out", lambda: ground.effects(key))  # pylint: disable=cell-var-from-loop
        wire.down.clear()
        open(until, "w", encoding="ascii").close()
        wait_for("it is committed", lambda: state(key) == "SUCCEEDED")  # pylint: disable=cell-var-from-loop
        gateway.kill()
        if late:
            wire.down.set()
        else:
            wire.lose()

    for thread in threads:
        thread.join(60)
        ground.check("an agent is not left waiting", thread.is_alive(), False)
    ends = settle(ground, gateway, permit, token, keys)
    print(f"{len(keys)} kills while it waited: {ends}", flush=True)
    calls = ground.calls(permit)
    for late in (False, True):
        ground.check("a commit that only the journal had", calls[f"answered-{late}"]["state"], "SUCCEEDED")
        ground.check("a commit that tallyd had", calls[f"committed-{late}"]["state"], "SUCCEEDED")
    ground.check("a call that was sent and not answered, after the operator's word", calls["sent"]["state"], "SUCCEEDED")


def main():
    with Ground() as ground:
        if TRANSPORT == "rounds":
            server = str(HERE.parent / "gateway/modern_upstream.py")
            sweep(ground, ground.stdio_upstream().replace(UPSTREAM, server))
            return ground.report("killed, rounds")
        if TRANSPORT == "keyed":
            sweep(ground, ground.stdio_upstream(more='[upstreams.led.tools.append]\ntimeout = "3s"\nreplay = "keyed"\n'
                                                'key = { argument = "key" }\nreplay_window = "1h"'))
            return ground.report("killed, keyed")
        upstream = ground.stdio_upstream() if TRANSPORT == "stdio" else ground.http_upstream()
        sweep(ground, upstream)
        by_wire(ground, upstream)
    return ground.report(f"killed, {TRANSPORT}")


sys.exit(main())
