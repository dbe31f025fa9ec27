"""The recipes of docs/lookups.md: every configuration is taken from the page as it stands there, and run by a real gateway,
a real reconciler and a real tallyd against tests/recipes/shop.py, which stands in for the providers.

Promised, of each: what happened is found, late or with a search that lags as well; what never happened becomes final,
and then its key goes through; a list that has more, or a search that gave up, is no absence.
"""
import datetime
import json
import re
import sys
import threading
import urllib.request

from reconciler import HERE, Reconciler, ask_until_sent, database_of, open_shop
from ground import Agent, Ground, text_of, verdict, wait_for

PAGE = HERE.parent.parent / "docs/lookups.md"
TOOLS = ["payments__refund", "mail__send_mail", "git__tag", "git__open_issue", "bookings__book", "notes__note",
         "charges__charge"]
# Those whose provider answers with lists that can be incomplete.
LISTS = ["payments__refund", "mail__send_mail", "git__open_issue", "notes__note"]
GRANT = 'cap = "unlimited"\ncost = { pointer = "/amount" }\nlease = "30s"\nsend_within = "3s"'


def fences(kind):
    """The blocks of the page that begin with this line."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    found = [block for block in blocks if block.startswith(kind)]
    assert found, f"{PAGE} has no block that begins with {kind}"
    return found


def gateway_config(port):
    """The page's tables below upstreams that all are the shop."""
    text = "\n".join(fences("# tally-gateway.toml"))
    names = sorted(set(re.findall(r"^\[upstreams\.([a-z]+)\.", text, re.M)))
    return "\n".join(f'[upstreams.{name}]\nurl = "http://127.0.0.1:{port}/mcp"\ntimeout = "10s"' for name in names) + "\n" + text


def replace(text, pattern, by):
    """Every replacement must find something, or the page has changed and this test with it."""
    changed, count = re.subn(pattern, by, text, flags=re.M)
    assert count, f"{PAGE} has nothing like {pattern}"
    return changed


def reconciler_config(ground, gateway, port, database):
    """The page's text, except what must differ: addresses, times, and that the shop is on loopback without TLS."""
    text = "\n".join(fences("# tally-reconciler.toml"))
    text = replace(text, r"https://api\.[a-z]+\.example", f"http://127.0.0.1:{port}")
    text = replace(text, r'^(\[\[provider\]\]\nname = .*)$', r"\1\nallow_private = true\nallow_http = true")
    text = replace(text, r"^per_second = .*$", "per_second = 50")
    text = replace(text, r'^absent_is_final_after = .*$', 'absent_is_final_after = "4s"')
    text = replace(text, r"^env = \{ PGHOST.*$",
                   "env = { " + ", ".join(f'{name} = "{value}"' for name, value in database.items()) + " }")
    text = replace(text, r"/usr/local/lib/tally/find-booking", str(gateway.folder / "find-booking"))
    for name in set(re.findall(r'"file:([a-z.]+)"', text)):
        (gateway.folder / name).write_text("Bearer a-key-of-the-shop\n", encoding="utf-8")
    (gateway.folder / "bookings.password").write_text("unused\n", encoding="utf-8")
    program = gateway.folder / "find-booking"
    program.write_text(fences("#!/usr/bin/env python3\n\"\"\"find-booking")[0], encoding="utf-8")
    program.chmod(0o755)
    (gateway.folder / "tally-gateway.toml").symlink_to(gateway.config)
    return f"""[tallyd]
server = "unix:{ground.socket}"
credential_file = "{ground.path("reconciler.credential")}"
[reconciler]
poll = "200ms"
backoff_min = "200ms"
backoff_max = "1s"
absent_spacing = "500ms"
{text}"""


class Recipes:
    def __init__(self, ground, gateway, reconciler, permit, token, port):
        self.ground, self.reconciler, self.permit, self.port = ground, reconciler, permit, port
        self.agent = Agent(gateway.port, token)
        self.answers = {}

    def call(self, tool, order):
        return self.agent.call(tool, {"order": order, "amount": 700}, key=f"{tool}/{order}")

    def call_all(self, orders):
        """All at once. `orders`: (tool, order)."""
        def one(tool, order):
            self.answers[(tool, order)] = ask_until_sent(lambda: self.call(tool, order))
        threads = [threading.Thread(target=one, args=pair, daemon=True) for pair in orders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)

    def ledger(self):
        """What was done: (tool, order) -> records."""
        done = {}
        with open(self.ground.path("ledger"), encoding="utf-8") as file:
            for line in file:
                record = json.loads(line)
                done.setdefault((record["tool"], record["order"]), []).append(record)
        return done

    def effects(self, tool, order):
        return self.ledger().get((tool.split("__")[1], order), [])

    def states(self):
        return {tuple(key.split("/")): call for key, call in self.ground.calls(self.permit).items()}

    def await_closed(self, orders):
        def closed():
            states = self.states()
            return all(pair in states and states[pair]["state"] not in ("AUTHORIZED", "UNCERTAIN") for pair in orders)
        wait_for("all are closed", closed, 120)

    def show(self, pair):
        return self.ground.run_tally("call", "show", self.states()[pair]["call_id"])

    def post(self, path):
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=b""), timeout=20):
            pass

    def lost_answers(self):
        """Every way in which an answer is lost, for every tool."""
        check = self.ground.check
        orders = [(tool, f"{fate}-1") for tool in TOOLS
                  for fate in (("deaf", "mute", "fine") if tool == "charges__charge" else ("cut", "late", "lag", "drop", "fine"))]
        self.call_all(orders)
        for tool, order in orders:
            # What is answered may be lost all the same, on a machine that has no time: then it is one more.
            kinds = ("done", "delivery_uncertain") if order == "fine-1" else ("delivery_uncertain",)
            check(f"{tool} {order}: the agent's answer", verdict(self.answers[(tool, order)]).split("/")[0],
                  lambda kind, kinds=kinds: kind in kinds)
        self.await_closed(orders)
        states = self.states()
        for tool, order in orders:
            what, effects, call = f"{tool} {order}", self.effects(tool, order), states[(tool, order)]
            dropped = order.startswith("drop")
            check(f"{what}: effects", len(effects), 0 if dropped else 1)
            check(f"{what}: state", call["state"], "NOT_HAPPENED" if dropped else "SUCCEEDED")
            if order.startswith("fine"):
                continue
            evidence = self.show((tool, order)).get("evidence", [])
            if not check(f"{what}: pieces of evidence", len(evidence), 1):
                continue
            check(f"{what}: who says so", evidence[0]["source"], tool.split("__")[0])
            if not dropped and tool != "charges__charge":
                check(f"{what}: where to find it again", evidence[0]["reference"], effects[0]["id"])
            again = self.call(tool, order)
            kinds = ("done", "delivery_uncertain") if dropped else ("replayed", "already_done")
            check(f"{what}: the same key again", verdict(again).split("/")[0], lambda kind, kinds=kinds: kind in kinds)
            check(f"{what}: effects after that", len(self.effects(tool, order)), 1)
        refund = text_of(self.call("payments__refund", "cut-1"))
        check("a refund's record is what its key is answered with", refund, lambda t: '"status"' in t and "cut-1" in t)
        check("a charge's first answer is what its key is answered with", text_of(self.call("charges__charge", "deaf-1")),
              lambda t: '"succeeded"' in t)

    def incomplete_lists(self):
        """Other people's records fill the pages: nothing is absent, and nobody else's record is taken for the call's."""
        check = self.ground.check
        self.post("/crowd/30")
        orders = [(tool, f"{fate}-2") for tool in LISTS for fate in ("cut", "drop")]
        self.call_all(orders)
        dropped = [pair for pair in orders if pair[1].startswith("drop")]

        def long_since(pair):
            """Looked at, and again long after an absence would have been final."""
            call = self.states()[pair]
            looks = [datetime.datetime.fromisoformat(look["time"]) for look in self.reconciler.looks(call["call_id"])]
            return call["state"] != "UNCERTAIN" or (looks and (looks[-1] - looks[0]).total_seconds() > 12)

        wait_for("each was looked at for long enough", lambda: all(long_since(pair) for pair in dropped), 120)
        for pair in dropped:
            check(f"{pair}: behind other people's records", self.states()[pair]["state"], "UNCERTAIN")
        self.post("/crowd/0")
        self.await_closed(orders)
        for tool, order in orders:
            check(f"{tool} {order}: with whole lists again", self.states()[(tool, order)]["state"],
                  "NOT_HAPPENED" if order.startswith("drop") else "SUCCEEDED")


def main():
    with Ground("recipes") as ground:
        database = database_of(ground)
        ground.authority.sql("CREATE SCHEMA shop")
        ground.authority.sql("CREATE TABLE shop.bookings (reference text, number text, amount bigint, state text)")
        _, port = open_shop(ground, LATE="2", LAG="3", DEAF="10", **database)
        gateway = ground.add_gateway("gateway", gateway_config(port)).start()
        permit, token = ground.mint({tool: GRANT for tool in TOOLS})
        reconciler = Reconciler(ground, "reconciler", gateway.folder,
                                reconciler_config(ground, gateway, port, database))
        status, said = reconciler.check()
        ground.check(f"tally-reconciler check: {said}", status, 0)
        reconciler.start()
        try:
            recipes = Recipes(ground, gateway, reconciler, permit, token, port)
            recipes.lost_answers()
            recipes.incomplete_lists()
            ground.check("the reconciler is up still", reconciler.alive(), True)
            audit = (gateway.folder / "reconciler-audit.jsonl").read_text(encoding="utf-8").splitlines()
            sends = [line for line in map(json.loads, audit) if line["method"] == "tools/call" and line["tool"] == "charge"]
            ground.check("each replay has its audit line", len(sends), lambda n: n >= 2)
        finally:
            ground.check("the reconciler ends by itself", reconciler.stop(), 0)
    return ground.report("recipes")


if __name__ == "__main__":
    sys.exit(main())
