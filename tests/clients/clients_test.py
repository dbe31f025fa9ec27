"""Real clients through the gateway to real servers, doing real writes.

usage: clients_test.py KIND ERA [--jsonrpc] [--show FILE]     KIND: sdk1, client2 or python; ERA: legacy or modern
  --jsonrpc   only what refusals look like with error_style = "jsonrpc"
  --show      writes what the client hands on to its caller, for docs/mcp-clients.md

What is promised here: caps, replays, denials and parked calls are seen by the client as what they are; and whatever
becomes of the server in the middle of a call, and however the client asks again, nothing is ever done twice, every call
ends answered, refused or parked, and `tally parked list` has exactly the calls that clients were told are uncertain.
"""
import json
import sys
import time

from stage import TIMEOUT_MS, Stage, find_python, wait_for

ERROR, CALL, KEY = "dev.tallystick/error", "dev.tallystick/call", "dev.tallystick/idempotency-key"
KIND = sys.argv[1]
ERA = sys.argv[2]
JSONRPC = "--jsonrpc" in sys.argv
SHOW = sys.argv[sys.argv.index("--show") + 1] if "--show" in sys.argv else None

if KIND == "python":
    find_python()
stage = Stage("jsonrpc" if JSONRPC else "result")
failures = 0
shown = []
uncertain = set()  # ids of calls of which a client was told that the outcome is not known


def check(what, got, wanted):
    global failures
    good = wanted(got) if callable(wanted) else got == wanted
    if not good:
        failures += 1
        print(f"NOT AS PROMISED: {what}: {json.dumps(got, default=str)[:600]}")
    return good


def act(server, tag):
    """A write that leaves a trace each time it is carried out."""
    if server == "memory":
        return "memory__create_entities", {"entities": [{"name": tag, "entityType": "note", "observations": ["o"]}]}
    if server == "files":
        edit = {"oldText": "END", "newText": f"{tag}\nEND"}
        return "files__edit_file", {"path": stage.path("files/log.txt"), "edits": [edit]}
    return "sqlite__create_record", {"table": "notes", "data": {"tag": tag}}


def order(session, tool, arguments, key=None, timeout_ms=60_000):
    meta = {KEY: key} if key else None
    return {"do": "call", "session": session, "name": tool, "arguments": arguments, "meta": meta,
            "timeout_ms": timeout_ms}


def verdict(answer):
    """What the client made of it: done, replayed, error, KIND/CODE of a refusal, or what it threw."""
    if "threw" in answer:
        return f"threw {answer['threw']['type']}"
    result = answer["result"]
    meta = result.get("_meta") or {}
    if ERROR in meta:
        error = meta[ERROR]
        # One that names another call by its reference only has no call of its own to be parked.
        if error["kind"] == "delivery_uncertain" and error["code"] in ("NO_ANSWER", "UPSTREAM_AMBIGUOUS"):
            uncertain.add(error["call_id"])
        return f"{error['kind']}/{error['code']}"
    if result.get("isError"):
        return "error"
    return "replayed" if (meta.get(CALL) or {}).get("replayed") else "done"


def text_of(answer):
    if "threw" in answer:
        return answer["threw"]["message"]
    return "\n".join(part.get("text", "") for part in answer["result"]["content"])


def show(what, answer):
    """Keeps for docs/mcp-clients.md what this client hands on."""
    shown.append({"what": what, "verdict": verdict(answer), "text": text_of(answer),
                  "threw": answer.get("threw")})


class Agent:
    """One client process with two sessions under one permit, "a" and "b"."""

    def __init__(self, name, grants):
        self.name = f"{KIND}-{ERA}-{name}"
        self.permit, self.token = stage.mint(self.name, grants)
        self.client = stage.client(KIND)
        for session in "ab":
            self.connect(session, self.token)

    def connect(self, session, token):
        answer = self.client.ask(do="connect", session=session, url=stage.url, token=token, era=ERA)
        if "threw" in answer:
            raise AssertionError(f"{self.name} cannot connect: {answer['threw']}")
        check("the revision spoken", answer["revision"], {"legacy": "2025-11-25", "modern": "2026-07-28"}[ERA])

    def call(self, tool, arguments, session="a", key=None, timeout_ms=60_000):
        return self.client.ask(**order(session, tool, arguments, key, timeout_ms))


def ordinary(agent):
    """Writes, cap, replay, denial: what happens on a good day."""
    for server in ("memory", "files", "sqlite"):
        tag = f"{agent.name}-{server}-first"
        tool, arguments = act(server, tag)
        answer = agent.call(tool, arguments, key=tag)
        check(f"{server}: a write", verdict(answer), "done")
        check(f"{server}: its effect", stage.effects(server, tag), 1)
        again = agent.call(tool, arguments, key=tag)
        check(f"{server}: the same key", verdict(again), "replayed")
        check(f"{server}: the replayed text", text_of(again), text_of(answer))
        check(f"{server}: a key of its own", verdict(agent.call(tool, arguments, key=tag + "-new")), "replayed")
        check(f"{server}: no key, another session", verdict(agent.call(tool, arguments, session="b")), "replayed")
        check(f"{server}: effects after that", (stage.effects(server, tag), stage.sends(server, tag)), (1, 1))
        show(f"replay, {server}", again)

    answer = agent.call("sqlite__read_records", {"table": "notes", "conditions": {"tag": f"{agent.name}-sqlite-first"}})
    check("a read", (verdict(answer), f"{agent.name}-sqlite-first" in text_of(answer)), ("done", True))
    tools = agent.client.ask(do="list", session="a")["tools"]
    check("the list of tools", tools, lambda tools: "sqlite__create_record" in tools and "sqlite__query" not in tools)

    answer = agent.call("sqlite__query", {"sql": "DELETE FROM notes"})
    show("a tool that is not granted", answer)
    check("a tool that is not granted", verdict(answer), "denied/TOOL_NOT_GRANTED")
    tool, arguments = act("sqlite", "x" * 200)
    answer = agent.call(tool, arguments)
    show("arguments against the permit", answer)
    check("arguments against the permit", verdict(answer), "denied/CONSTRAINT_VIOLATED")
    answer = agent.call(*act("sqlite", f"{agent.name}-other"), key=f"{agent.name}-sqlite-first")
    show("a key used for something else", answer)
    check("a key used for something else", verdict(answer), "invalid/KEY_REUSED")
    check("nothing of that", stage.sends("sqlite", "DELETE") + stage.sends("sqlite", "x" * 200)
          + stage.effects("sqlite", f"{agent.name}-other"), 0)

    answer = agent.call("sqlite__create_record", {"table": "none", "data": {"tag": "t"}})
    show("a tool's own error", answer)
    check("a tool's own error", (verdict(answer), "none" in text_of(answer)), ("error", True))
    answer = agent.call("memory__create_entities", {"entities": "not an array"})
    show("arguments that the server refuses", answer)
    check("arguments that the server refuses", verdict(answer), lambda v: v == "error" or v.startswith("threw"))

    path = stage.path(f"files/{agent.name}")
    for i in (1, 2):
        check("up to the cap", verdict(agent.call("files__write_file", {"path": f"{path}-{i}", "content": "c"})), "done")
    answer = agent.call("files__write_file", {"path": f"{path}-3", "content": "c"})
    show("over the cap", answer)
    check("over the cap", verdict(answer), "cap_exceeded/CALL_CAP")
    check("files after that", [(stage.work / f"files/{agent.name}-{i}").exists() for i in (1, 2, 3)], [True, True, False])


# What befalls the server; what the one who called hears; and whether the effect is there when all is over.
FAULTS = {
    "kill": ("delivery_uncertain/NO_ANSWER", 1),
    "kill_before": ("delivery_uncertain/NO_ANSWER", None),
    "cut": ("delivery_uncertain/NO_ANSWER", 1),
    "hang": ("delivery_uncertain/NO_ANSWER", 1),
}


def retries(agent, tool, arguments, key):
    """As frameworks ask again: the same key, a new one, none; twice at once; from another session."""
    answers = [agent.call(tool, arguments, key=key), agent.call(tool, arguments, key=key + "-new"),
               agent.call(tool, arguments)]
    numbers = agent.client.start(order("a", tool, arguments), order("a", tool, arguments),
                                 order("b", tool, arguments, key), order("b", tool, arguments))
    return answers + [agent.client.answer(number) for number in numbers]


def disturbed(agent, server, fault):
    what = f"{server}, {fault}"
    told, effects = FAULTS[fault]
    tag = f"{agent.name}-{server}-{fault}"
    tool, arguments = act(server, tag)
    stage.fault(server, fault)
    answer = agent.call(tool, arguments, key=tag)
    check(what, verdict(answer), told)
    check(f"{what}: in words", text_of(answer), lambda text: text.startswith("delivery_uncertain: ")
          and "Do not call it again" in text.splitlines()[0])
    if server == "sqlite":
        show(f"the server: {fault}", answer)
    for i, again in enumerate(retries(agent, tool, arguments, tag)):
        check(f"{what}: asked again", verdict(again), lambda v: v.startswith("delivery_uncertain/"))
        if server == "sqlite" and fault == "kill" and i < 2:
            show("asked again while parked, " + ("the same key", "a new key")[i], again)
    check(f"{what}: effects", stage.effects(server, tag), lambda n: n == effects if effects is not None else n in (0, 1))
    check(f"{what}: sends", stage.sends(server, tag), 1)
    other = f"{tag}-other"
    check(f"{what}: another act", verdict(agent.call(*act(server, other), session="a")), "done")
    check(f"{what}: its effect", stage.effects(server, other), 1)


def late(agent, server):
    """The answer comes after the gateway's timeout: told as uncertain, then found to be done, and no longer parked."""
    tag = f"{agent.name}-{server}-late"
    tool, arguments = act(server, tag)
    stage.fault(server, f"late {TIMEOUT_MS / 1000 + 5}")
    answer = agent.call(tool, arguments, key=tag)
    check(f"{server}, late", verdict(answer), "delivery_uncertain/NO_ANSWER")
    call = answer["result"]["_meta"][ERROR]["call_id"]
    check(f"{server}, late: parked meanwhile", parked(agent), lambda calls: call in calls)
    check(f"{server}, late: asked at once", verdict(agent.call(tool, arguments)),
          lambda v: v.startswith("delivery_uncertain/") or v == "replayed")
    wait_for("the late answer is committed", lambda: call not in parked(agent), 30)
    uncertain.discard(call)
    for again in retries(agent, tool, arguments, tag):
        check(f"{server}, late: asked again", verdict(again), "replayed")
    check(f"{server}, late: effects", (stage.effects(server, tag), stage.sends(server, tag)), (1, 1))


def impatient(agent, server):
    """The client gives up before the gateway does, and asks again with a fresh key."""
    tag = f"{agent.name}-{server}-impatient"
    tool, arguments = act(server, tag)
    stage.fault(server, "late 0.9")
    answer = agent.call(tool, arguments, timeout_ms=300)
    check(f"{server}, the client's own timeout", verdict(answer), lambda v: v.startswith("threw"))
    if server == "sqlite":
        show("the client's own timeout", answer)
    again = agent.call(tool, arguments, key=tag + "-again")
    check(f"{server}, impatient: while it is under way", verdict(again),
          lambda v: v in ("replayed", "delivery_uncertain/INTENT_PENDING", "delivery_uncertain/STILL_AUTHORIZED"))
    if server == "sqlite":
        show("asked again while under way, a new key", again)
    wait_for(f"{server}, impatient: a new key is told what came of it",
             lambda: verdict(agent.call(tool, arguments, key=tag + "-later")) == "replayed", 30)
    check(f"{server}, impatient: effects", (stage.effects(server, tag), stage.sends(server, tag)), (1, 1))


def twice(agent, server):
    """Two calls within 3 ms, with nothing in common but what they mean."""
    for sessions in ("aa", "ab"):
        tag = f"{agent.name}-{server}-twice-{sessions}"
        tool, arguments = act(server, tag)
        numbers = agent.client.start(*(order(session, tool, arguments) for session in sessions))
        verdicts = sorted(verdict(agent.client.answer(number)) for number in numbers)
        check(f"{server}, twice {sessions}", verdicts,
              lambda v: v.count("done") == 1 and set(v) <= {"done", "replayed", "delivery_uncertain/INTENT_PENDING",
                                                            "contended/CONTENDED"})
        check(f"{server}, twice {sessions}: effects", (stage.effects(server, tag), stage.sends(server, tag)), (1, 1))


def parked(agent):
    return {entry["call"]["call_id"] for entry in stage.run_tally("parked", "list", "--permit", agent.permit)["parked"]}


def other_refusals(agent):
    revoked, token = stage.mint(agent.name + "-revoked", {"sqlite__create_record": 'cap = 5\ncost = "none"'})
    agent.connect("revoked", token)
    stage.run_tally("permit", "revoke", revoked)
    answer = agent.call(*act("sqlite", f"{agent.name}-revoked"), session="revoked")
    show("a revoked permit", answer)
    check("a revoked permit", verdict(answer), "denied/PERMIT_REVOKED")

    answer = agent.client.ask(do="connect", session="bad", url=stage.url, token="nonsense", era=ERA)
    if "threw" not in answer:
        answer = agent.call(*act("sqlite", f"{agent.name}-bad"), session="bad")
    show("a token that is none", answer)
    check("a token that is none", verdict(answer), lambda v: v.startswith(("threw", "unauthorized")))

    stage.stop("tallyd")
    answer = agent.call(*act("sqlite", f"{agent.name}-away"))
    show("tallyd away", answer)
    check("tallyd away", verdict(answer), "unavailable/AUTHORITY_DOWN")
    check("no address of ours in it", text_of(answer), lambda text: "tallyd.sock" not in text)
    time.sleep(1.2)  # over permit.view_ttl: now nobody remembers the permit
    answer = agent.call(*act("sqlite", f"{agent.name}-away"))
    check("tallyd away for longer", verdict(answer), "unavailable/AUTHORITY_DOWN")
    stage.start_tallyd()
    answer = wait_for("calls go on", lambda: (a := agent.call(*act("sqlite", f"{agent.name}-away"))) and
                      verdict(a) == "done" and a, 30)
    check("effects after tallyd was away", (stage.effects("sqlite", f"{agent.name}-away"),
                                            stage.sends("sqlite", f"{agent.name}-away")), (1, 1))
    check("nothing for the others", stage.sends("sqlite", f"{agent.name}-revoked")
          + stage.sends("sqlite", f"{agent.name}-bad"), 0)


def as_errors(agent):
    """error_style = "jsonrpc": what a client throws keeps code, words and data."""
    def refused(what, answer, code, kind):
        show(what, answer)
        threw = answer.get("threw") or {}
        check(what, threw.get("code"), code)
        check(f"{what}: in words", threw.get("message"), lambda text: f"{kind}: " in (text or ""))
        check(f"{what}: for machines", (threw.get("data") or {}).get(ERROR, {}).get("kind"), kind)
        return threw["data"][ERROR].get("call_id")

    refused("a tool that is not granted", agent.call("sqlite__query", {"sql": "DELETE FROM notes"}), -32003, "denied")
    path = stage.path(f"files/{agent.name}")
    for i in (1, 2):
        check("up to the cap", verdict(agent.call("files__write_file", {"path": f"{path}-{i}", "content": "c"})), "done")
    answer = agent.call("files__write_file", {"path": f"{path}-3", "content": "c"})
    refused("over the cap", answer, -32004, "cap_exceeded")
    tag = f"{agent.name}-kill"
    stage.fault("sqlite", "kill")
    call = refused("the server: kill", agent.call(*act("sqlite", tag)), -32006, "delivery_uncertain")
    for i in range(2):
        refused("asked again while parked", agent.call(*act("sqlite", tag)), -32006, "delivery_uncertain")
    check("effects", (stage.effects("sqlite", tag), stage.sends("sqlite", tag)), (1, 1))
    check("the parked call", parked(agent), {call})
    stage.stop("tallyd")
    refused("tallyd away", agent.call(*act("sqlite", f"{agent.name}-away")), -32009, "unavailable")
    time.sleep(1.2)
    refused("tallyd away for longer", agent.call(*act("sqlite", f"{agent.name}-away")), -32009, "unavailable")


def main():
    (stage.work / "files/log.txt").write_text("END\n", encoding="utf-8")
    free = 'cap = "unlimited"\ncost = "none"'
    agent = Agent("agent", {
        "memory__create_entities": free, "files__edit_file": free,
        "files__write_file": 'cap = 2\ncost = "none"',
        "sqlite__read_records": free + '\neffect = "read"',
        "sqlite__create_record": free + '\narguments = { type = "object", properties = { data = { type = "object", '
                                        'properties = { tag = { type = "string", maxLength = 100 } } } } }',
    })
    if JSONRPC:
        return as_errors(agent)
    ordinary(agent)
    for server in ("memory", "files", "sqlite"):
        twice(agent, server)
        impatient(agent, server)
        late(agent, server)
        for fault in FAULTS:
            disturbed(agent, server, fault)
    check("the parked calls are those of which clients were told", sorted(parked(agent)), sorted(uncertain))
    check("how many those are", len(uncertain), 3 * len(FAULTS))
    return other_refusals(agent)


with stage:
    start = time.monotonic()
    main()
    for program in ("gateway", "tallyd"):
        check(f"{program} ends by itself", stage.stop(program), lambda status: status in (0, None))
    stage.kept = failures > 0
if SHOW:
    with open(SHOW, "w", encoding="utf-8") as file:
        json.dump(shown, file, indent=1)
print(f"{KIND} {ERA}: {failures} promises broken, {len(uncertain)} calls parked, {time.monotonic() - start:.0f} s")
sys.exit(1 if failures else 0)
