"""A day: 500 calls of twenty agents through a real gateway to a provider with a ledger of its own, which loses one answer
in ten, carries some of those out late, denies knowledge of some until later, and of one tool cannot be asked. Two
reconcilers, each of which is killed on the way, over and over.

usage: day_test.py [SEED]

Promised, when the day is over:
  * the provider's ledger has no act twice;
  * every parked call whose tool has a look-up is closed, with what the ledger says, one by one; the others are listed for
    a person, with what is needed to close them;
  * the three numbers of `tally report` are those of the ledger;
  * a key of what had not happened goes through, one of what had is answered and does nothing;
  * all receipts verify, offline, as whole chains.
"""
import collections
import json
import pathlib
import random
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "recipes"))
from reconciler import Reconciler, ask_until_sent, open_shop  # noqa: E402
from ground import Agent, Ground, verdict, wait_for  # noqa: E402

SEED = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 20261130
CALLS, AGENTS, PERMITS, KILLS = 500, 20, 4, 8
# What is lost is found, or lands, well after the lease's end (9 s after the grant), and before an absence is final.
LATE, LAG, DEAF = 12, 13, 25
ABSENT_IS_FINAL_AFTER = "12s"
WEIGHTS = {"refund": 40, "send_mail": 15, "note": 20, "charge": 15, "ship": 10}
FATES = {"charge": ["deaf", "mute"], "ship": ["cut", "drop"]}
OTHER_FATES = ["cut", "hang", "late", "late", "lag", "lag", "drop", "drop"]
GRANT = 'cap = "unlimited"\ncost = { pointer = "/amount" }\nlease = "60s"\nsend_within = "3s"'

GATEWAY = """[upstreams.shop]
url = "http://127.0.0.1:PORT/mcp"
timeout = "5s"
late_answer_window = "0s"
[upstreams.shop.tools.refund]
reference = { argument = "reference" }
[upstreams.shop.tools.send_mail]
reference = { meta = "shop.example/reference" }
[upstreams.shop.tools.note]
reference = { header = "X-Reference" }
[upstreams.shop.tools.charge]
replay = "keyed"
key = { argument = "idempotency_key" }
replay_window = "10m"
"""

RECONCILER = """log_level = "info"
[tallyd]
server = "unix:SOCKET"
credential_file = "CREDENTIAL"
[reconciler]
workers = 4
poll = "300ms"
claim = "5s"
backoff_min = "300ms"
backoff_max = "2s"
absent_spacing = "1s"
[audit]
path = "AUDIT"

[[provider]]
name = "shop"
concurrency = 4
per_second = 100
allow_private = true
allow_http = true

[[tool]]
tool = "shop__refund"
look_up = "http"
provider = "shop"
timeout = "2s"
absent_is_final_after = "FINAL"
[tool.http]
url = "http://127.0.0.1:PORT/v1/refunds/search?query=metadata['reference']:'{reference}'"
secret_headers = { Authorization = "file:shop.authorization" }
[tool.answer]
records = "/data"
match = { pointer = "/metadata/reference", equals = "{reference}" }
complete = { pointer = "/has_more", is = "false" }
status = "/status"
happened = ["succeeded"]
amount = { pointer = "/amount", form = "minor" }
provider_id = "/id"

[[tool]]
tool = "shop__send_mail"
look_up = "http"
provider = "shop"
timeout = "2s"
absent_is_final_after = "FINAL"
[tool.http]
url = "http://127.0.0.1:PORT/v1/messages?message_id=<{reference}@shop.example>"
secret_headers = { Authorization = "file:shop.authorization" }
[tool.answer]
records = "/messages"
match = { pointer = "/message_id", equals = "<{reference}@shop.example>" }
complete = { pointer = "/has_more", is = "false" }
record_is = "happened"
provider_id = "/id"

[[tool]]
tool = "shop__note"
look_up = "mcp"
provider = "shop"
timeout = "2s"
absent_is_final_after = "FINAL"
[tool.mcp]
gateway_config = "gateway.toml"
tool = "find_note"
arguments = '{"reference": "{reference}"}'
[tool.answer]
records = "/notes"
match = { pointer = "/reference", equals = "{reference}" }
complete = { pointer = "/more", is = "false" }
record_is = "happened"
provider_id = "/id"

[[tool]]
tool = "shop__charge"
look_up = "replay"
provider = "shop"
timeout = "2s"
[tool.replay]
gateway_config = "gateway.toml"
"""


def plan(dice):
    """Every call of the day: tool, order, amount, fate, whether its agent is one that tries again with a fresh key."""
    tools = dice.choices(list(WEIGHTS), list(WEIGHTS.values()), k=CALLS)
    calls = []
    for number, tool in enumerate(tools):
        drawn = dice.random()
        fate = "refuse" if drawn > 0.97 and tool != "charge" else "fine"
        if drawn < 0.1:
            fate = dice.choice(FATES.get(tool, OTHER_FATES))
        calls.append({"tool": tool, "order": f"{fate}-{number:04d}", "amount": dice.randint(1, 900), "fate": fate,
                      "hasty": dice.random() < 0.5})
    return calls


class Day:
    def __init__(self, ground, gateway, calls):
        self.ground, self.gateway, self.calls = ground, gateway, calls
        self.permits = [ground.mint({"shop__*": GRANT}, budget="100000000") for _ in range(PERMITS)]
        for number, call in enumerate(calls):
            call["permit"], call["token"] = self.permits[number % PERMITS]
        self.lost = [call for call in calls if call["fate"] not in ("fine", "refuse")]
        self.agents = {}

    # ---- The agents ----

    def agent(self, token):
        mine = self.agents.setdefault(threading.get_ident(), {})
        if token not in mine:
            mine[token] = Agent(self.gateway.port, token)
        return mine[token]

    def ask(self, call, key):
        return self.agent(call["token"]).call(f"shop__{call['tool']}", {"order": call["order"], "amount": call["amount"]},
                                              key=key, timeout=90)

    def work(self, calls):
        """Twenty agents, each with the next call when it has an answer."""
        queue, lock = collections.deque(calls), threading.Lock()

        def one():
            while True:
                with lock:
                    if not queue:
                        return
                    call = queue.popleft()
                try:
                    call["answer"] = ask_until_sent(lambda call=call: self.ask(call, call["order"]))
                    if call["hasty"] and verdict(call["answer"]).startswith("delivery_uncertain/"):
                        call["again"] = self.ask(call, "fresh-" + call["order"])
                except Exception as error:  # pylint: disable=broad-except
                    call["answer"] = {"error": {"code": 0, "message": repr(error)}}
                    raise

        threads = [threading.Thread(target=one, daemon=True) for _ in range(AGENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        assert not any(thread.is_alive() for thread in threads), "an agent is left waiting"

    # ---- The books ----

    def ledger(self):
        """What the provider did: order -> records."""
        done = collections.defaultdict(list)
        with open(self.ground.path("ledger"), encoding="utf-8") as file:
            for line in file:
                record = json.loads(line)
                done[record["order"]].append(record)
        return done

    def states(self):
        return {key: call for permit, _ in self.permits for key, call in self.ground.calls(permit).items()}

    def closable(self):
        return [call for call in self.lost if call["tool"] != "ship"]

    def left_open(self):
        return [call for call in self.lost if call["tool"] == "ship"]

    def await_closed(self):
        wanted = {call["order"] for call in self.closable()}

        def closed():
            states = self.states()
            return all(states[order]["state"] not in ("AUTHORIZED", "UNCERTAIN") for order in wanted)

        wait_for("what can be looked up is closed", closed, 120)

    # ---- What is promised ----

    def check_agents(self):
        check = self.ground.check
        for call in self.calls:
            wanted = {"fine": "done", "refuse": "error"}.get(call["fate"])
            kind = verdict(call["answer"]).split("/")[0]
            check(f"{call['order']}: the agent's answer", kind, lambda k, wanted=wanted: k in (wanted, "delivery_uncertain"))
            # A machine that has no time loses answers as well. They count like the provider's losses.
            if wanted and kind == "delivery_uncertain":
                self.lost.append(call)
            if "again" in call:
                check(f"{call['order']}: tried again in haste", verdict(call["again"]), lambda v: v in (
                    "delivery_uncertain/INTENT_PENDING", "replayed", "already_done/ALREADY_DONE"))

    def check_no_duplicates(self, when):
        twice = {order: len(records) for order, records in self.ledger().items() if len(records) > 1}
        self.ground.check(f"{when}: acts that were done twice", twice, {})

    def check_truth(self):
        """Each parked call by itself, against the ledger."""
        ledger, states = self.ledger(), self.states()
        for call in self.closable():
            state, effects = states[call["order"]]["state"], len(ledger[call["order"]])
            self.ground.check(f"{call['order']} ({call['tool']}): state, with {effects} effects", state,
                              "SUCCEEDED" if effects else "NOT_HAPPENED")
        uncertain = {key for key, call in states.items() if call["state"] == "UNCERTAIN"}
        self.ground.check("what is open still", sorted(uncertain), sorted(call["order"] for call in self.left_open()))

    def check_people(self):
        """What a person gets: all that no provider can answer, with what is needed to close it."""
        check = self.ground.check

        def listed():
            parked = [entry for permit, _ in self.permits
                      for entry in self.ground.run_tally("parked", "list", "--permit", permit).get("parked", [])]
            return parked if all(entry.get("escalated") for entry in parked) else None

        parked = wait_for("a person is called for each", listed, 60)
        by_key = {entry["call"]["key"]: entry for entry in parked}
        check("who is listed", sorted(by_key), sorted(call["order"] for call in self.left_open()))
        for call in self.left_open():
            entry = by_key[call["order"]]
            shown = self.ground.run_tally("parked", "show", entry["call"]["state_receipt_id"])
            for what in (entry, shown):
                check(f"{call['order']}: its money", int(what.get("hold", 0)), call["amount"])
            text = json.dumps(shown)
            for needed in (call["order"], "shop__ship", "sent_at", entry["call"]["state_receipt_id"]):
                check(f"{call['order']}: a person is told {needed}", needed in text, True)

    def check_report(self):
        """The three numbers, against the ledger."""
        check, ledger = self.ground.check, self.ledger()
        report = self.ground.run_tally("report", "--days", "2")
        check("calls that ended unknown", sum(int(day.get("parked", 0)) for day in report["unknown"]), len(self.lost))
        check("attempts", sum(int(day.get("attempts", 0)) for day in report["unknown"]),
              sum(call["attempts"][-1]["number"] for call in self.states().values() if call["attempts"]))
        check("parked now", int(report["parked"].get("now", 0)), len(self.left_open()))
        check("people called", int(report.get("escalations_open", 0)), len(self.left_open()))
        happened = [call for call in self.closable() if ledger[call["order"]]]
        check("duplicates that were avoided", int(report["avoided"].get("calls", 0)), len(happened))
        check("their money", [(money["unit"], int(money["amount"])) for money in report["avoided"].get("money", [])],
              [("USD/2", sum(record["amount"] for call in happened for record in ledger[call["order"]]))])
        closed = {one["closer"]: one for one in report.get("closed", [])}
        # A gateway that is slow to send a keyed call its fourth time may be answered, late.
        check("who closed calls", sorted(closed), lambda who: who in (["RECONCILER"], ["GATEWAY", "RECONCILER"]))
        check("closed", sum(int(one["calls"]) for one in closed.values()), len(self.closable()))
        took = self.took_ms()
        check("closed by the reconcilers, as receipts tell", int(closed["RECONCILER"]["calls"]), len(took))
        # The value below which that part of them lies, as percentile_disc has it.
        for name, part in (("median_ms", 50), ("p99_ms", 99)):
            check(f"time to close: {name}", int(closed["RECONCILER"][name]), took[-(-len(took) * part // 100) - 1])
        return report

    def receipts(self):
        return [receipt for permit, _ in self.permits for receipt in
                self.ground.run_tally("receipt", "list", "--permit", permit, who="auditor")["receipts"]]

    def took_ms(self):
        """From parked to resolved, of each call, by their receipts."""
        parked, took = {}, []
        for receipt in self.receipts():
            if receipt["kind"] == "CALL_UNCERTAIN":
                parked[receipt["call_id"]] = receipt["time_us"]
            if receipt["kind"].startswith("CALL_RESOLVED"):
                took.append((receipt["time_us"] - parked[receipt["call_id"]]) // 1000)
        return sorted(took)

    def check_keys_again(self):
        """After the day: every lost call's key once more."""
        check, states, before = self.ground.check, self.states(), self.ledger()
        again = [dict(call, hasty=False) for call in self.lost]
        self.work(again)
        after = self.ledger()
        for call in again:
            state, order = states[call["order"]]["state"], call["order"]
            wanted = {"SUCCEEDED": ("replayed", "already_done/ALREADY_DONE"), "NOT_HAPPENED": ("done",)}.get(
                state, ("delivery_uncertain/STILL_PENDING",))
            check(f"{order}, {state}: the same key again", verdict(call["answer"]), lambda v, wanted=wanted: v in wanted)
            check(f"{order}, {state}: effects", len(after[order]), len(before[order]) + (state == "NOT_HAPPENED"))

    def check_receipts(self):
        for permit, _ in self.permits:
            folder = self.ground.path(f"receipts-{permit}")
            self.ground.run_tally("receipt", "export", "--permit", permit, "--out", folder, who="auditor")
            done = subprocess.run([self.ground.tally, "receipt", "verify", *map(str, pathlib.Path(folder).glob("*.dsse.json")),
                                   "--keys", folder + "/keys.json"],
                                  capture_output=True, text=True, timeout=120, check=False)
            self.ground.check(f"receipts of {permit} verify: {done.stdout[-600:]} {done.stderr[-300:]}", done.returncode, 0)


def kill_now_and_then(reconcilers, dice, over):
    """SIGKILL, at whatever point, and a new process a little later; both in turn, so that one is mostly there."""
    killed = 0
    for number in range(KILLS):
        if over.wait(dice.uniform(1.5, 4)):
            break
        one = reconcilers[number % len(reconcilers)]
        if not one.alive():
            print(f"NOT AS PROMISED: {one.name} ended by itself: {one.log()[-1500:]}", flush=True)
            one.ground.failures += 1
            break
        one.kill()
        killed += 1
        time.sleep(0.3)
        one.start()
    return killed


def main():
    dice = random.Random(SEED)
    with Ground("day") as ground:
        _, port = open_shop(ground, LATE=str(LATE), LAG=str(LAG), DEAF=str(DEAF), HANG="8")
        gateway = ground.add_gateway("gateway", GATEWAY.replace("PORT", str(port))).start()
        (gateway.folder / "shop.authorization").write_text("Bearer a-key-of-the-shop\n", encoding="utf-8")
        credential = ground.path("reconciler.credential")
        reconcilers = []
        for name in ("reconciler-1", "reconciler-2"):
            text = RECONCILER
            for word, by in (("SOCKET", ground.socket), ("CREDENTIAL", credential), ("PORT", str(port)),
                             ("FINAL", ABSENT_IS_FINAL_AFTER), ("AUDIT", name + ".jsonl")):
                text = text.replace(word, by)
            reconcilers.append(Reconciler(ground, name, gateway.folder, text).start())
        over, killed = threading.Event(), []
        killer = threading.Thread(target=lambda: killed.append(kill_now_and_then(reconcilers, dice, over)), daemon=True)
        try:
            day = Day(ground, gateway, plan(random.Random(SEED)))
            began = time.monotonic()
            killer.start()
            day.work(day.calls)
            worked = time.monotonic()
            day.check_agents()
            day.await_closed()
            closed = time.monotonic()
            over.set()
            killer.join(30)
            day.check_no_duplicates("before anybody asks again")
            day.check_truth()
            day.check_people()
            report = day.check_report()
            day.check_keys_again()
            day.check_no_duplicates("at the end")
            day.check_receipts()
            fates = collections.Counter(call["fate"] for call in day.calls)
            print(f"seed {SEED}: {CALLS} calls in {worked - began:.0f} s, {dict(fates)}; {len(day.closable())} closed "
                  f"{closed - worked:.0f} s after, {len(day.left_open())} for a person; reconcilers killed {killed} times; "
                  f"avoided {report['avoided']}", flush=True)
            # The day means nothing if it never met the states in question.
            for fate in ("cut", "hang", "late", "lag", "drop", "deaf", "mute"):
                ground.check(f"met: {fate}", fates[fate], lambda n: n > 0)
            ground.check("reconcilers were killed", killed, lambda k: bool(k) and k[0] >= 3)
            sends = sum('"tools/call"' in line and '"charge"' in line for name in ("reconciler-1", "reconciler-2")
                        for line in (gateway.folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
            announced = sum(receipt["kind"] == "CALL_REPLAY_SENT" for receipt in day.receipts())
            # A kill may come between a receipt and its send, or between a send and its line.
            ground.check("replays that were sent, of those that receipts announce", (sends, announced),
                         lambda pair: fates["deaf"] + fates["mute"] <= pair[0] <= pair[1])
        finally:
            over.set()
            for reconciler in reconcilers:
                ground.check(f"{reconciler.name} ends by itself", reconciler.stop(), 0)
    return ground.report("a day")


if __name__ == "__main__":
    sys.exit(main())
