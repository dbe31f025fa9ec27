"""tally-reconciler against a real tallyd and a real provider.

usage: reconciler_test.py truth|unclear|bent|exec|killed|two|away

Promised: what the provider's ledger says is what calls end as, each by one resolution; what cannot be read releases nothing
and goes to a person; a reconciler may die at any moment.
"""
import json
import os
import pathlib
import random
import sys
import time
import urllib.request

from stage import (COST, HERE, Ground, Reconciler, Stage, calls_pb2, common_pb2, logged, sound,
                   wait_for)

RANDOM = random.Random(20261130)


def truth(ground, stage):
    """What happened, what did not, what lands late, what a search shows late, what the provider takes back."""
    provider = stage.provider
    happened, never, failed = stage.park("t__pay"), stage.park("t__pay"), stage.park("t__pay")
    late, lagging, pending = stage.park("t__late"), stage.park("t__pay"), stage.park("t__pay")
    taken_back, person = stage.park("t__pay"), stage.park("t__other")
    provider.land(happened, amount=7, id="re_happened")
    provider.land(failed, status="failed")
    provider.land(lagging, lag=1.5, id="re_lagging")
    provider.land(pending, status="pending", id="re_pending")
    provider.behave(taken_back, json.dumps({"data": [{"id": "x", "status": "pending", "amount": 1, "metadata": {
        "ref": taken_back["reference"]}}], "has_more": False}))
    # Its gateway's word came after the lease, and names no time of sending.
    attempt, answer = stage.authorize("t__pay", {"n": "unsent"}, "key-unsent")
    unsent = {"id": answer.call_id, "key": "key-unsent", "tool": "t__pay", "arguments": {"n": "unsent"}}
    wait_for("its lease ends", lambda: stage.commit(answer.call_id, attempt, calls_pb2.OUTCOME_NOT_SENT)
             .refusal.code == "LEASE_OVER" if time.time() * 1e6 > answer.lease_end_us + 5e5 else False)
    reconciler = Reconciler(stage, "r", provider.tool("t__pay") + provider.tool("t__late", absent="600s",
                                                                                more='give_up_after = "1h"'),
                            'give_up_after = "120s"\nmetrics = "127.0.0.1:0"').start()
    stage.await_state(happened, "SUCCEEDED")
    port = logged(reconciler.log(), "listening")[0]["metrics"].rsplit(":", 1)[1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        figures = answer.read().decode()
    for figure in ('tally_reconciler_look_ups_total{finding="happened",kind="http",provider="bank"}',
                   'tally_reconciler_resolutions_total{verdict="happened"}', "tally_reconciler_last_list_timestamp_seconds"):
        ground.check(f"/metrics has {figure}", figure in figures, True)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as answer:
        ground.check("/healthz", answer.status, 200)
    attempt = stage.info(happened).attempts[-1]
    ground.check("the evidence's amount is charged", attempt.charged, 7)
    replay = stage.replay(happened)
    ground.check("its key replays", common_pb2.Disposition.Name(replay.disposition), "REPLAY")
    ground.check("with what the evidence gave as result", json.loads(replay.result),
                 {"content": [{"type": "text", "text": "re_happened"}]})
    stage.await_state(failed, "NOT_HAPPENED")
    stage.await_state(unsent, "NOT_HAPPENED")
    ground.check("on the gateway's word", [e.source for e in stage.info(unsent).evidence][-1], "gateway_journal")
    stage.await_state(lagging, "SUCCEEDED")

    stage.await_state(never, "NOT_HAPPENED")
    info = stage.info(never)
    evidence = [e for e in info.evidence if e.source == "bank"][-1]
    ground.check("no absence is final before its time", evidence.time_us - info.attempts[-1].lease_end_us,
                 lambda us: us >= 2_000_000 + 500_000)
    ground.check("the hold is given back", info.attempts[-1].held, 0)
    attempt, again = stage.authorize(never["tool"], never["arguments"], never["key"])
    ground.check("the same key goes through, as attempt 2", (again.disposition, again.attempt_number),
                 (common_pb2.DISPATCH, 2))
    stage.commit(never["id"], attempt, calls_pb2.OUTCOME_SUCCEEDED, result=b"{}")

    wait_for("late is looked for", lambda: stage.findings(late).count("ABSENT") >= 3)
    ground.check("an early absence releases nothing", stage.info(late).attempts[-1].held, COST)
    provider.land(late, id="re_late")
    stage.await_state(late, "SUCCEEDED")

    wait_for("a pending one is asked about again", lambda: stage.findings(pending).count("PENDING") >= 2)
    provider.behave(pending, json.dumps({"data": [{"id": "re_pending", "status": "succeeded", "amount": 10, "metadata": {
        "ref": pending["reference"]}}], "has_more": False}))
    stage.await_state(pending, "SUCCEEDED")

    wait_for("one is seen", lambda: "PENDING" in stage.findings(taken_back))
    provider.behave(taken_back, "")
    wait_for("what the provider takes back goes to a person", lambda: stage.escalated(taken_back))
    ground.check("and releases nothing", stage.state(taken_back), "UNCERTAIN")
    wait_for("what has no look-up goes to a person", lambda: stage.escalated(person))
    provider.land(taken_back, id="x", amount=1)
    stage.await_state(taken_back, "SUCCEEDED")  # may still be brought
    for call in (happened, failed, lagging, late, pending, taken_back, unsent):
        ground.check(f"one resolution of {call['key']}", len(stage.resolutions(call)), 1)
    ground.check("ends by itself", reconciler.stop(), 0)
    ground.check("its log", sound(reconciler.log()), True)


def unclear(ground, stage):
    """Whatever is no answer: never NOT_HAPPENED, and a person in the end."""
    modes = ["500", "503", "404", "429", "204", "301", "redirect", "timeout", "huge", "cut", "more", "others", "", "<html>",
             "null", "[]", "{}", '{"data": [], "has_more": false', '{"data": [], "data": [], "has_more": false}',
             '{"data": null, "has_more": false}', '{"data": [], "has_more": null}']
    calls = {}
    for mode in modes:
        calls[mode or "empty"] = call = stage.park("t__pay")
        stage.provider.behave(call, mode or " ")
    for mode, status in (("unknown status", "reversed"), ("twice", "succeeded")):
        calls[mode] = call = stage.park("t__pay")
        stage.provider.land(call, status=status)
        stage.provider.behave(call, "twice" if mode == "twice" else "")
    calls["private address"], calls["nobody there"] = stage.park("t__public"), stage.park("t__gone")
    gone = stage.provider.tool("t__gone").replace(f":{stage.provider.port}/", ":1/")
    tools = stage.provider.tool("t__pay") + stage.provider.tool("t__public", provider="public") + gone
    reconciler = Reconciler(stage, "r", tools, 'give_up_after = "6s"').start()
    for mode, call in calls.items():
        wait_for(f"{mode} goes to a person", lambda call=call: stage.escalated(call))
        ground.check(f"{mode}: state", stage.state(call), "UNCERTAIN")
        ground.check(f"{mode}: hold", stage.info(call).attempts[-1].held, COST)
        ground.check(f"{mode}: found", set(stage.findings(call)), {"UNCLEAR"})
    notes = stage.parked(calls["twice"]).look_ups
    ground.check("a person reads why", notes[-1].detail, lambda text: "more than once" in text)
    ground.check("and what was answered", json.loads(notes[-1].body)["has_more"], False)
    ground.check("a private address was never asked", stage.provider.asked(calls["private address"]), [])
    # After that only good news is brought.
    good, bad = calls["500"], calls["503"]
    stage.provider.land(good)
    stage.provider.land(bad, status="failed")
    for call in (good, bad):
        stage.provider.behave(call, "")
    stage.await_state(good, "SUCCEEDED")
    wait_for("it is asked on", lambda: "NOT_HAPPENED" in stage.findings(bad))
    ground.check("after escalation NOT_HAPPENED is a person's word", stage.state(bad), "UNCERTAIN")
    ground.check("ends by itself", reconciler.stop(), 0)
    ground.check("its log", sound(reconciler.log()), True)


def bent(ground, stage):
    """What an agent wrote bends no look-up, and is found by the provider exactly as it was written."""
    nasty = ["' OR '1'='1", '"}], "has_more": false, "x": [{"', "a&ref=other&customer=b", "{reference}", "{argument:/n}", "%2e%2e/%00",
             "line\r\nX-Injected: 1", "ü💸\u2028", "../../admin", "#fragment?x=1", "\u0000", " ", "+", "AGENT-WROTE"]
    form = '\nmethod = "POST"\nform = { ref = "{reference}", customer = "{argument:/customer}" }'
    body = '\nmethod = "POST"\njson = \'\'\'{"ref": "{reference}", "customer": "{argument:/customer}"}\'\'\''
    query = ("/search?ref={reference}&customer={argument:/customer}&query=metadata['ref']:'{reference}'")
    header = '\nsecret_headers = { Authorization = "file:auth" }\nheaders = { X-Ref = "r={reference}" }'
    tools = (stage.provider.tool("t__query", query, http=header) + stage.provider.tool("t__form", "/search", http=form) +
             stage.provider.tool("t__json", "/search", http=body) + stage.provider.tool("t__whole", query))
    calls = []
    for text in nasty:
        for tool in ("t__query", "t__form", "t__json"):
            calls.append(stage.park(tool, {"customer": text}, key=f"{tool} {text}".translate({i: "~" for i in range(32)})))
            stage.provider.land(calls[-1])
    bending = [stage.park("t__whole", {"customer": value}) for value in ({"$ne": 1}, ["a"], None)]
    bending.append(stage.park("t__whole"))
    reconciler = Reconciler(stage, "r", tools, 'give_up_after = "60s"')
    secret = reconciler.folder / "auth"
    secret.write_text("Bearer sesame\n", encoding="utf-8")
    secret.chmod(0o644)
    refused = reconciler.run("serve")
    ground.check("a secret that others can read", (refused.returncode, "sesame" in refused.stderr), (1, False))
    secret.chmod(0o600)
    checked = reconciler.run("check")
    ground.check("check says that all is well", (checked.returncode, checked.stderr), (0, ""))
    ground.check("and no secret", "sesame" in checked.stdout, False)
    reconciler.start()
    for call in calls:
        stage.await_state(call, "SUCCEEDED")
        for entry in stage.provider.asked(call):
            ground.check(f"{call['key']} arrives", entry["asked"].get("customer"), [call["arguments"]["customer"]])
            ground.check(f"{call['key']} brings nothing with it", set(entry["asked"]) - {"query"}, {"ref", "customer"})
            ground.check(f"{call['key']} makes no header", entry["headers"].get("x-injected"), None)
            if call["tool"] == "t__query":
                ground.check("the query", entry["asked"]["query"], [f"metadata['ref']:'{call['reference']}'"])
                ground.check("headers", (entry["headers"].get("authorization"), entry["headers"].get("x-ref")),
                             ("Bearer sesame", f"r={call['reference']}"))
    for call in bending:
        wait_for("what is no scalar is not asked", lambda call=call: "UNCLEAR" in stage.findings(call))
        ground.check("nothing was asked", stage.provider.asked(call), [])
    ground.check("ends by itself", reconciler.stop(), 0)
    ground.check("its log", (sound(reconciler.log()), "sesame" in reconciler.log()), (True, False))


def exec_(ground, stage):
    """Programs: those that answer, and those that do not."""
    ledger = ground.work / "rows"
    done, never = stage.park("t__row"), stage.park("t__row")
    modes = {mode: stage.park("t__row", {"mode": mode}) for mode in ("exit", "signal", "hang", "flood", "prose")}
    inside, leave = stage.park("t__row", {"mode": "inside"}), stage.park("t__row", {"mode": "leave"})
    rows = [{"row": i, "ref": call["reference"], "amount": 3} for i, call in enumerate([done, leave])]
    ledger.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    password = ground.work / "password"
    password.write_text("sesame\n", encoding="utf-8")
    program = ground.work / "program"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {HERE}/program.py \"$@\"\n", encoding="utf-8")
    program.chmod(0o755)
    os.environ["SECRET_OF_OURS"] = "x"
    os.environ["LD_TEST_LEAK"] = "x"
    reconciler = Reconciler(stage, "r", f"""[[tool]]
tool = "t__*"
look_up = "exec"
provider = "bank"
timeout = "2s"
absent_is_final_after = "2s"
[tool.exec]
program = "{program}"
args = ["{ledger}"]
env_files = {{ LEDGER_PASSWORD = "{password}" }}
""", 'give_up_after = "20s"').start()
    stage.await_state(done, "SUCCEEDED")
    ground.check("the amount", stage.info(done).attempts[-1].charged, 3)
    ground.check("where it is found again", stage.info(done).evidence[-1].reference, "row 0")
    stage.await_state(leave, "SUCCEEDED")
    stage.await_state(inside, "SUCCEEDED")
    seen = json.loads(json.loads(stage.replay(inside).result)["content"][0]["text"])
    ground.check("no descriptor is inherited", seen["descriptors"], ["0", "1", "2"])
    allowed = {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "LEDGER_PASSWORD", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
    ground.check("nor a variable", set(seen["variables"]) - allowed, set())
    ground.check("but those that were given", seen["secret"], "sesame")
    ground.check("what it is told", {name: seen["asked"][name] for name in ("call_id", "reference", "tool", "unit", "amount",
                                                                            "arguments", "attempt")},
                 {"call_id": inside["id"], "reference": inside["reference"], "tool": "t__row", "unit": "USD/2",
                  "amount": COST, "arguments": inside["arguments"], "attempt": 1})
    stage.await_state(never, "NOT_HAPPENED")
    for mode, call in modes.items():
        wait_for(f"{mode} goes to a person", lambda call=call: stage.escalated(call))
        ground.check(f"{mode}: found", set(stage.findings(call)), {"UNCLEAR"})
        ground.check(f"{mode}: hold", stage.info(call).attempts[-1].held, COST)
    ground.check("ends by itself", reconciler.stop(), 0)
    left = [pid for pid in os.listdir("/proc") if pid.isdigit() and command_of(pid) == ["sleep", "600"]]
    ground.check("nothing is left running", left, [])
    ground.check("its log", (sound(reconciler.log()), "sesame" in reconciler.log()), (True, False))


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")[:-1]
    except OSError:
        return []


def park_many(stage, count):
    """Half of them happened, and some of those show late."""
    truth_of = {}
    for i in range(count):
        call = stage.park("t__pay")
        truth_of[call["id"]] = i % 2 == 0
        if i % 2 == 0:
            stage.provider.land(call, lag=RANDOM.choice([0, 0, 0.5, 1.0]))
    return truth_of


def compare(ground, stage, truth_of, by_hand=None):
    for call in stage.calls:
        wanted = ["CALL_RESOLVED_HAPPENED" if truth_of[call["id"]] else "CALL_RESOLVED_NOT_HAPPENED"]
        ground.check(f"{call['key']} closed once, with the truth", stage.resolutions(call), wanted)
        if call is by_hand:
            continue  # a person's verdict rests on evidence of its own
        seen = [found for found in stage.noted(call) if found != "UNCLEAR"]
        ground.check(f"{call['key']}: what its verdict was drawn from is on record", seen[-1:],
                     ["HAPPENED" if truth_of[call["id"]] else "ABSENT"])
    held = sum(stage.info(call).attempts[-1].held for call in stage.calls)
    ground.check("no hold is left", held, 0)


def all_closed(stage):
    return all(stage.state(call) in ("SUCCEEDED", "NOT_HAPPENED") for call in stage.calls)


def killed(ground, stage):
    """SIGKILL at moments that no one chose."""

    truth_of = park_many(stage, 40)
    reconciler = Reconciler(stage, "r", stage.provider.tool("t__pay", absent="3s"), 'give_up_after = "1h"')
    for _ in range(25):
        reconciler.start()
        time.sleep(RANDOM.uniform(0.2, 2.0))
        reconciler.kill()
    ground.check("it was killed at work", logged(reconciler.log(), "look_up"), lambda looks: len(looks) > 10)
    reconciler.start().started()
    wait_for("all are closed", lambda: all_closed(stage), 120)
    ground.check("ends by itself", reconciler.stop(), 0)
    compare(ground, stage, truth_of)


def two(ground, stage):
    """Two reconcilers and a person, on the same calls."""
    truth_of = park_many(stage, 30)
    by_hand = stage.calls[0]
    tools = stage.provider.tool("t__pay", absent="3s")
    both = [Reconciler(stage, name, tools, 'give_up_after = "1h"').start() for name in ("one", "other")]
    won = False
    parked = stage.parked(by_hand)
    if parked and parked.uncertain_receipt_id:
        try:
            ground.resolve({"state_receipt_id": parked.uncertain_receipt_id.hex()}, "happened")
            won = True
        except AssertionError as lost:
            ground.check("a person who comes late is told", str(lost), lambda text: "STALE_RESOLUTION" in text or
                         "already" in text)
    wait_for("all are closed", lambda: all_closed(stage), 120)
    for reconciler in both:
        ground.check("ends by itself", reconciler.stop(), 0)
        ground.check("its log", sound(reconciler.log()), True)
    ground.check("both worked", [len(logged(reconciler.log(), "look_up")) > 0 for reconciler in both], [True, True])
    compare(ground, stage, truth_of, by_hand if won else None)


def away(ground, stage):
    """tallyd dies and comes back; SIGTERM lets what is under way be finished."""
    truth_of = park_many(stage, 10)
    reconciler = Reconciler(stage, "r", stage.provider.tool("t__pay", absent="3s"), 'give_up_after = "1h"').start().started()
    wait_for("it works", lambda: logged(reconciler.log(), "look_up"))
    ground.authority.kill()
    wait_for("it notices", lambda: logged(reconciler.log(), "list_failed") or logged(reconciler.log(), "tallyd_failed"))
    ground.authority.start()
    stage.connect()
    wait_for("all are closed", lambda: all_closed(stage), 120)
    compare(ground, stage, truth_of)
    slow = stage.park("t__slow")
    stage.provider.land(slow)
    stage.provider.behave(slow, "slow")
    reconciler.stop()
    reconciler = Reconciler(stage, "s", stage.provider.tool("t__slow").replace('timeout = "1s"', 'timeout = "2s"'),
                            'give_up_after = "1h"').start()
    wait_for("the provider is asked", lambda: stage.provider.asked(slow))
    ground.check("ends by itself", reconciler.stop(), 0)
    ground.check("what was under way is done", stage.state(slow), "SUCCEEDED")


SCENARIOS = {"truth": truth, "unclear": unclear, "bent": bent, "exec": exec_, "killed": killed, "two": two, "away": away}

if __name__ == "__main__":
    SCENARIO = SCENARIOS[sys.argv[1]]
    with Ground("reconciler") as GROUND:
        SCENARIO(GROUND, Stage(GROUND))
    sys.exit(GROUND.report(f"reconciler {sys.argv[1]}"))
