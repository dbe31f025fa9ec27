"""Agents that ask again, and gateways behind gateways: one effect, and what is uncertain stays so."""
import http.client
import pathlib
import sys
import threading
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/ground"))
from ground import KEY, MODERN, Agent, Ground, StdioAgent, text_of, verdict, wait_for

TIMEOUT = 'timeout = "1s"'


def agents(gateway, token):
    return [("2025", lambda: Agent(gateway.port, token)), ("2026", lambda: Agent(gateway.port, token, MODERN))]


def success_it_never_saw(ground, gateway):
    """The agent gives up before the answer; the gateway commits the success; a fresh key, from another session."""
    permit, token = ground.mint({"led__append": 'cap = 10\ncost = "none"'})
    for era, connect in agents(gateway, token):
        text, until = f"unseen-{era}", ground.path(f"until-{era}")
        arguments = {"text": text, "then": "await", "until": until}
        agent = connect()
        try:
            agent.call("led__append", arguments, key=text, timeout=0.5)
            ground.check(f"{text}: gave up", "answered", "gave up")
        except OSError:
            pass
        wait_for("carried out", lambda: ground.effects(text))  # pylint: disable=cell-var-from-loop
        during = connect().call("led__append", arguments, key=text + "-during")
        ground.check(f"{text}: asked while under way", verdict(during), "delivery_uncertain/INTENT_PENDING")
        open(until, "w", encoding="ascii").close()
        wait_for("committed", lambda: ground.calls(permit)[text]["state"] == "SUCCEEDED")  # pylint: disable=cell-var-from-loop
        for key in (text + "-fresh", None, text + "-during", text):
            again = connect().call("led__append", arguments, key=key)
            ground.check(f"{text}: asked again with {key}", (verdict(again), text_of(again)), ("replayed", f"done: {text}"))
        ground.check(f"{text}: effects", ground.effects(text), 1)
    ground.check("slots", ground.run_tally("permit", "show", permit)["grants"][0]["cap"]["used"], 2)


def late_answer(ground, gateway):
    """After the gateway's own timeout: parked, then committed, then replayed; the operator has nothing left to do."""
    permit, token = ground.mint({"led__append": 'cap = 10\ncost = "none"'})
    for era, connect in agents(gateway, token):
        text, until = f"late-{era}", ground.path(f"until-late-{era}")
        arguments = {"text": text, "then": "await", "until": until}
        answer = connect().call("led__append", arguments, key=text)
        ground.check(f"{text}: told", verdict(answer), "delivery_uncertain/NO_ANSWER")
        ground.check(f"{text}: parked", text in ground.parked(permit), True)
        ground.check(f"{text}: a fresh key", verdict(connect().call("led__append", arguments)),
                     "delivery_uncertain/INTENT_PENDING")
        open(until, "w", encoding="ascii").close()
        wait_for("committed", lambda: ground.calls(permit)[text]["state"] == "SUCCEEDED")  # pylint: disable=cell-var-from-loop
        ground.check(f"{text}: not parked", text in ground.parked(permit), False)
        again = connect().call("led__append", arguments)
        ground.check(f"{text}: asked again", (verdict(again), text_of(again)), ("replayed", f"done: {text}"))
        ground.check(f"{text}: effects", ground.effects(text), 1)


def fresh_uuid_inside(ground, gateway):
    permit, token = ground.mint({"led__append": 'cap = 10\ncost = "none"\nintent_ignore = ["/request_id"]',
                                 "led__other": 'cap = 10\ncost = "none"'})
    for era, connect in agents(gateway, token):
        text = f"uuid-{era}"
        answers = [connect().call("led__append", {"text": text, "request_id": str(uuid.uuid4())}) for _ in range(3)]
        ground.check(f"{text}: answers", [verdict(a) for a in answers], ["done", "replayed", "replayed"])
        ground.check(f"{text}: effects", ground.effects(text), 1)
        # At the same time, too.
        text += "-together"
        found = []
        ready = [connect() for _ in range(4)]
        threads = [threading.Thread(target=lambda a=a: found.append(verdict(a.call(  # pylint: disable=cell-var-from-loop
            "led__append", {"text": text, "request_id": str(uuid.uuid4())})))) for a in ready]  # pylint: disable=cell-var-from-loop
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        ground.check(f"{text}: answers", sorted(found), lambda v: len(v) == 4 and v.count("done") == 1 and set(v) <= {
            "done", "replayed", "delivery_uncertain/INTENT_PENDING", "contended/CONTENDED",
            "contended/SERIALIZATION_FAILURE"})
        ground.check(f"{text}: effects", ground.effects(text), 1)
        # Where the operator did not say so, another argument is another act.
        text = f"uuid-other-{era}"
        answers = [connect().call("led__other", {"text": text, "request_id": str(uuid.uuid4())}) for _ in range(2)]
        ground.check(f"{text}: answers", [verdict(a) for a in answers], ["done", "done"])
    ground.check("slots", ground.run_tally("permit", "show", permit)["grants"][0]["cap"]["used"], 4)


def goes_in_the_middle(ground, gateway):
    """The agent ends its session, over HTTP, or closes the gateway's standard input, while a call is under way."""
    permit, token = ground.mint({"led__append": 'cap = 10\ncost = "none"'})
    agent, until = Agent(gateway.port, token), ground.path("until-deleted")
    arguments = {"text": "deleted", "then": "await", "until": until}
    answers = []
    thread = threading.Thread(target=lambda: answers.append(agent.call("led__append", arguments, key="deleted")), daemon=True)
    thread.start()
    wait_for("carried out", lambda: ground.effects("deleted"))
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    connection.request("DELETE", "/mcp", headers=agent.headers())
    ground.check("the session is ended", connection.getresponse().status, 204)
    connection.close()
    open(until, "w", encoding="ascii").close()
    thread.join(60)
    wait_for("committed", lambda: ground.calls(permit)["deleted"]["state"] == "SUCCEEDED")
    again = Agent(gateway.port, token).call("led__append", arguments)
    ground.check("asked again in a session of its own", (verdict(again), ground.effects("deleted")), ("replayed", 1))
    gateway.stop()

    # The gateway itself ends with its input: what it sent and has no answer to is parked by the next run, at the latest.
    stdio, until = StdioAgent(gateway, token), ground.path("until-closed")
    arguments = {"text": "closed", "then": "await", "until": until}
    stdio.send({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": "led__append", "arguments": arguments, "_meta": {KEY: "closed"}}})
    wait_for("carried out", lambda: ground.effects("closed"))
    ground.check("the gateway ends", stdio.end(), 0)
    gateway.start()
    wait_for("parked", lambda: "closed" in ground.parked(permit))
    again = Agent(gateway.port, token).call("led__append", arguments)
    ground.check("asked again after that", (verdict(again), ground.effects("closed")), ("delivery_uncertain/INTENT_PENDING", 1))
    open(until, "w", encoding="ascii").close()


def behind_each_other(ground, style, transport):
    """Agent, gateway, gateway, tool. The far one speaks over HTTP, or on its standard streams."""
    name = f"{style}-{transport}"
    far_permit, far_token = ground.mint({"led__append": 'cap = 3\ncost = "none"'})
    token_file = ground.work / f"far-{name}.token"
    token_file.write_text(far_token + "\n", encoding="utf-8")
    far = ground.add_gateway(f"far-{name}", ground.stdio_upstream(more=TIMEOUT),
                             top=f'stdio = "file:{token_file}"\n[mcp]\nerror_style = "{style}"')
    if transport == "http":
        far.start()
        (far.folder / "headers").write_text(f"Authorization: Bearer {far_token}\n", encoding="utf-8")
        upstream = (f'[upstreams.far]\nurl = "http://127.0.0.1:{far.port}/mcp"\n'
                    f'headers_file = "{far.folder / "headers"}"\ntimeout = "5s"\n')
    else:
        upstream = (f'[upstreams.far]\ncommand = "{ground.gateway}"\nargs = ["serve", "--stdio", "{far.config}"]\n'
                    f'timeout = "5s"\n')
    near = ground.add_gateway(f"near-{name}", upstream).start()
    permit, token = ground.mint({"far__led__append": 'cap = 20\ncost = "none"', "far__led__other": 'cap = 3\ncost = "none"'})
    agent = Agent(near.port, token)

    answer = agent.call("far__led__append", {"text": f"{name}-1"}, key="1")
    ground.check(f"{name}: done", (verdict(answer), text_of(answer)), ("done", f"done: {name}-1"))

    until = ground.path(f"until-{name}")
    late = {"text": f"{name}-2", "then": "await", "until": until}
    answer = agent.call("far__led__append", late, key="2")
    ground.check(f"{name}: uncertain at the far end", verdict(answer), lambda v: v.startswith("delivery_uncertain/"))
    ground.check(f"{name}: and at this", "2" in ground.parked(permit), True)
    again = agent.call("far__led__append", late)
    ground.check(f"{name}: asked again", verdict(again), "delivery_uncertain/INTENT_PENDING")
    ground.check(f"{name}: effects", ground.effects(f"{name}-2"), 1)

    # The far end learns it late; whoever asks it again under its own key is told.
    open(until, "w", encoding="ascii").close()
    wait_for("the far end commits it",
             lambda: sum(call["state"] == "SUCCEEDED" for call in ground.calls(far_permit).values()) == 2)
    ground.check(f"{name}: here it stays uncertain", "2" in ground.parked(permit), True)

    answer = agent.call("far__led__append", {"text": f"{name}-3", "then": "die"}, key="3")
    ground.check(f"{name}: the tool dies", verdict(answer), lambda v: v.startswith("delivery_uncertain/"))
    ground.check(f"{name}: parked", sorted(ground.parked(permit)), ["2", "3"])

    # The far gateway's refusals are certain: nothing was done, and no hold is kept.
    answer = agent.call("far__led__append", {"text": f"{name}-4"}, key="4")
    ground.check(f"{name}: the far cap is used up", (verdict(answer), ground.effects(f"{name}-4")),
                 lambda v: v[0].startswith("cap_exceeded/") and v[1] == 0)
    ground.check(f"{name}: which is an answer", ground.calls(permit)["4"]["state"], "TOOL_ERROR")
    answer = agent.call("far__led__other", {"text": f"{name}-5"}, key="5")
    ground.check(f"{name}: what the far permit does not grant", verdict(answer), lambda v: v.startswith("denied/"))
    ground.check(f"{name}: which is an answer, too", ground.calls(permit)["5"]["state"], "TOOL_ERROR")

    ground.check(f"{name}: effects at last", [ground.effects(f"{name}-{i}") for i in range(1, 6)], [1, 1, 1, 0, 0])
    for call in ground.parked(permit).values():
        ground.resolve(call, "happened")
    ground.check(f"{name}: once it is resolved", verdict(agent.call("far__led__append", late, key="2")),
                 "already_done/ALREADY_DONE")
    near.stop()
    far.stop()


def main():
    with Ground() as ground:
        for transport in ("stdio", "http"):
            upstream = ground.stdio_upstream(more=TIMEOUT) if transport == "stdio" else ground.http_upstream(more=TIMEOUT)
            gateway = ground.add_gateway(f"patient-{transport}", upstream.replace(TIMEOUT, 'timeout = "30s"')).start()
            success_it_never_saw(ground, gateway)
            fresh_uuid_inside(ground, gateway)
            goes_in_the_middle(ground, gateway)
            gateway.stop()
            gateway = ground.add_gateway(f"hasty-{transport}", upstream).start()
            late_answer(ground, gateway)
            gateway.stop()
            (ground.work / "effects").unlink()
            for file in ground.work.glob("until*"):
                file.unlink()
        for style in ("result", "jsonrpc"):
            for transport in ("http", "stdio"):
                behind_each_other(ground, style, transport)
    return ground.report("again")


sys.exit(main())
