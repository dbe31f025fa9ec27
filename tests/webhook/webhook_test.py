"""Webhooks from end to end: real tallyd, a real receiver.

usage: webhook_test.py order|killed|replicas|public
"""
import base64
import json
import pathlib
import re
import socket
import subprocess
import sys
import threading
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/ground"))
sys.path.insert(0, str(HERE))
from ground import Ground, wait_for
from receiver import Receiver, snippet, verify

MARK = "MARK-OF-WHAT-AN-AGENT-WROTE"
ALLOWED = ('[webhooks]\nallow_private = true\nallow_http = true\ntimeout = "2s"\nretry_first = "300ms"\n'
           'retry_longest = "1s"\n[listen]\nhttp = "127.0.0.1:0"\n')


class Calls:
    """A permit, and calls of it whose gateway is this test."""

    def __init__(self, ground):
        self.ground = ground
        self.permit, token = ground.mint({"refund": 'cap = "unlimited"\ncost = { fixed = 42 }'})
        self.token = ground.work / "permit.token"
        self.token.write_text(token, encoding="utf-8")

    def granted(self, key, server=None):
        return self.ground.run_tally("call", "authorize", "--permit-token-file", str(self.token), "--key", key + MARK,
                                     "--tool", "refund", "--args", json.dumps({"n": key, "text": MARK}), who="gateway",
                                     server=server)

    def commit(self, call, outcome, *more, server=None):
        return self.ground.run_tally("call", "commit", call["call_id"], "--attempt-id", call["attempt_id"], "--outcome",
                                     outcome, *more, who="gateway", server=server)

    def parked(self, key, server=None):
        call = self.granted(key, server)
        self.commit(call, "uncertain", server=server)
        return call

    def resolve(self, call, verdict):
        shown = self.ground.run_tally("call", "show", call["call_id"])
        self.ground.resolve(shown.get("call", shown), verdict)


def create(ground, url):
    return ground.run_tally("webhook", "create", url)


def listed(ground, webhook):
    return next(one for one in ground.run_tally("webhook", "list")["webhooks"]
                if one["webhook_id"] == webhook["webhook_id"])


def by_hand(secret, message, folder):
    """The signature as docs/webhooks.md makes it with openssl."""
    (folder / "body").write_bytes(message.body)
    done = subprocess.run(["sh", "-c", snippet("sh")], cwd=folder, check=True, capture_output=True, text=True, timeout=60,
                          env={"PATH": "/usr/bin:/bin", "SECRET": secret, "ID": message.id,
                               "TIMESTAMP": message.headers["webhook-timestamp"]})
    return "v1," + done.stdout.strip()


def order(ground):
    check = ground.check
    receiver = Receiver()
    webhook = create(ground, receiver.url())
    secret = webhook["secret"]
    check("the secret is 32 bytes", len(base64.b64decode(secret.removeprefix("whsec_"))), 32)
    test = ground.run_tally("webhook", "test", webhook["webhook_id"])
    check("a test is delivered", [test["delivered"], test["http_status"]], [True, 200])
    message = receiver.got[0]
    check("it is a test", message.type, "tally.test")
    check("it is signed", verify(secret, message.headers, message.body), True)
    check("openssl agrees", by_hand(secret, message, ground.work), message.headers["webhook-signature"])
    check("another body is refused", verify(secret, message.headers, message.body + b" "), False)
    check("an old one is refused", verify(secret, message.headers, message.body, 4e9), False)
    check("another secret is refused", verify("whsec_" + base64.b64encode(bytes(32)).decode(), message.headers, message.body),
          False)

    # Calls: one whose messages fail at first, one that is answered late, one that is contradicted and corrected.
    calls = Calls(ground)
    failing = calls.granted("failing")
    broken = threading.Event()
    broken.set()
    receiver.answer = lambda m: 500 if m.call == failing["call_id"] and broken.is_set() else 200
    calls.commit(failing, "uncertain")
    wait_for("two failed tries", lambda: len(receiver.of(failing["call_id"])) >= 2)
    calls.resolve(failing, "not-happened")
    late = calls.parked("late")
    calls.commit(late, "succeeded", "--result", json.dumps({"said": MARK}))
    wait_for("another call does not wait", lambda: receiver.taken(late["call_id"]) == ["call.parked", "call.resolved"])
    check("a later message waits for the earlier", {m.type for m in receiver.of(failing["call_id"])}, {"call.parked"})
    check("the last error is told", listed(ground, webhook)["last_error"] in ("HTTP 500", ""), True)
    broken.clear()
    wait_for("it is taken in the end",
             lambda: receiver.taken(failing["call_id"]) == ["call.parked", "call.resolved"])
    tries = [m for m in receiver.of(failing["call_id"]) if m.type == "call.parked"]
    check("every try has the same id and body", len({(m.id, m.body) for m in tries}), 1)
    check("every try is signed anew", all(verify(secret, m.headers, m.body) for m in tries), True)

    wrong = calls.parked("wrong")
    calls.resolve(wrong, "cannot-tell")
    calls.resolve(wrong, "not-happened")
    calls.commit(wrong, "succeeded", "--result", "{}")
    wait_for("a life is told in its order", lambda: receiver.taken(wrong["call_id"]) == [
        "call.parked", "call.escalated", "call.resolved", "call.contradicted"])
    last = receiver.of(wrong["call_id"])[-1].data
    check("what the last one says", [last[k] for k in ("state", "hold", "charged", "unit", "tool", "attempt", "closed_by")],
          ["SUCCEEDED", 42, 42, "USD/2", "refund", 1, "gateway"])
    check("nothing that an agent wrote is in it", [m.type for m in receiver.got if MARK.encode() in m.body], [])

    # Two secrets for a day, and then one.
    fresh = ground.run_tally("webhook", "rotate", webhook["webhook_id"])["secret"]
    ground.run_tally("webhook", "test", webhook["webhook_id"])
    rotated = receiver.got[-1]
    check("two signatures", len(rotated.headers["webhook-signature"].split()), 2)
    check("both secrets verify", [verify(s, rotated.headers, rotated.body) for s in (secret, fresh)], [True, True])
    ground.authority.sql("UPDATE webhooks SET former_until_us = 1")
    ground.run_tally("webhook", "test", webhook["webhook_id"])
    rotated = receiver.got[-1]
    check("the former one is over", [verify(s, rotated.headers, rotated.body) for s in (secret, fresh)], [False, True])

    # Away, and back.
    receiver.close()
    away = calls.parked("away")
    wait_for("a try that found nobody", lambda: listed(ground, webhook)["last_error"])
    check("a test that finds nobody", ground_fails(ground, "webhook", "test", webhook["webhook_id"]), 1)
    receiver.open()
    wait_for("it comes when the receiver is back", lambda: receiver.taken(away["call_id"]) == ["call.parked"])

    # What is not wanted, and what nobody ever takes.
    before = listed(ground, webhook)
    receiver.answer = lambda m: 410
    gone = calls.parked("gone")
    wait_for("410 gives up", lambda: listed(ground, webhook)["given_up"] == before["given_up"] + 1)
    check("after one try", len(receiver.of(gone["call_id"])), 1)
    receiver.answer = lambda m: 302
    old = calls.parked("old")
    wait_for("a redirect is no success", lambda: len(receiver.of(old["call_id"])) >= 2)
    check("and is not followed", [m.path for m in receiver.got if m.path != "/hook"], [])
    ground.authority.sql("UPDATE outbox SET created_at_us = created_at_us - 72::bigint * 3600 * 1000000")
    wait_for("three days give up", lambda: listed(ground, webhook)["given_up"] == before["given_up"] + 2)
    check("nothing waits", listed(ground, webhook)["waiting"], 0)
    check("and it says why", listed(ground, webhook)["last_error"], "HTTP 302")
    told = listed(ground, webhook)
    wanted = {"waiting": 0, "delivered_total": told["delivered"], "given_up_total": told["given_up"]}
    wait_for("/metrics says the same", lambda: metrics(ground) == wanted)

    # One that never answers takes few senders, and holds nobody up.
    receiver.answer = lambda m: 200
    silent = Receiver(lambda m: threading.Event().wait(20) or 200)
    create(ground, silent.url())
    many = [calls.parked(f"many-{i}") for i in range(8)]
    wait_for("a silent one holds nobody up", lambda: all(receiver.taken(c["call_id"]) for c in many))
    wait_for("it was tried", lambda: silent.got)
    check("with few at a time", silent.most_at_once <= 8, True)  # 4, and as many that were given up by the sender
    ground.run_tally("webhook", "delete", webhook["webhook_id"])
    check("deleted", len(ground.run_tally("webhook", "list")["webhooks"]), 1)


def metrics(ground):
    """What /metrics says of acme's webhooks."""
    address = re.search(r"metrics on (\S+)", ground.authority.log()).group(1)
    with urllib.request.urlopen(address, timeout=30) as answer:
        text = answer.read().decode()
    return {name: int(value) for name, value in re.findall(r'^tally_webhook_(\w+){tenant="acme"} (\d+)', text, re.M)}


def ground_fails(ground, *arguments):
    """The exit code of a command that is to fail."""
    environment = {"TALLY_SERVER": f"unix:{ground.socket}", "TALLY_CREDENTIAL": ground.path("operator.credential")}
    done = subprocess.run([ground.tally, "-o", "json", *arguments], capture_output=True, text=True, timeout=60, check=False,
                          env=environment)
    return done.returncode


def killed(ground):
    """SIGKILL between send and delete: nothing is lost, and what comes again has its first id."""
    check = ground.check
    holding = threading.Event()
    receiver = Receiver(lambda m: holding.wait(60) and 200)
    create(ground, receiver.url())
    calls = Calls(ground)
    some = [calls.parked(f"k{i}") for i in range(6)]
    wait_for("messages are on their way", lambda: len(receiver.got) >= 3)
    ground.authority.kill()
    first = {m.call: m.id for m in list(receiver.got)}
    check("their rows stand", ground_rows(ground), "6")
    holding.set()
    receiver.answer = lambda m: 200
    ground.authority.start()
    # The claims of the dead: another minute would do the same.
    ground.authority.sql("UPDATE outbox SET next_try_us = 0")
    wait_for("all arrive", lambda: ground_rows(ground) == "0")
    for call in some:
        came = receiver.of(call["call_id"])
        check("none is lost", len(came) >= 1, True)
        check("one id for each", len({m.id for m in came}), 1)
    check("those that came before came again", [c for c in first if len(receiver.of(c)) < 2], [])
    check("with their first id", [c for c in first if {m.id for m in receiver.of(c)} != {first[c]}], [])

    # SIGTERM waits for what is under way, and what it was told is stored.
    slow = threading.Event()
    receiver.answer = lambda m: (slow.wait(1.0), 200)[1]
    last = calls.parked("last")
    wait_for("the last is under way", lambda: receiver.of(last["call_id"]))
    ground.authority.process.terminate()
    check("it ends by itself", ground.authority.process.wait(60), 0)
    ground.authority.start()
    check("and nothing is left to send", ground_rows(ground), "0")
    check("it came once", len(receiver.of(last["call_id"])), 1)


def ground_rows(ground):
    return ground.authority.sql("SELECT count(*) FROM outbox")[0] if ground.authority.database_pid() else ""


def replicas(ground):
    check = ground.check
    receiver = Receiver()
    webhook = create(ground, receiver.url())
    first = ground.authority
    other = ground.add_tallyd("e", f'database_url = "host={first.database_folder} user=tally dbname=tally"\n', ALLOWED,
                              like=first).start()
    calls = Calls(ground)
    some = [calls.parked(f"r{i}", server=(first if i % 2 else other).socket) for i in range(12)]
    for call in some[:6]:
        calls.commit(call, "succeeded", "--result", "{}")
    wait_for("all are delivered", lambda: listed(ground, webhook)["delivered"] == 18)
    for call in some:
        wanted = ["call.parked", "call.resolved"] if call in some[:6] else ["call.parked"]
        check("each once, in order", [m.type for m in receiver.of(call["call_id"])], wanted)
    check("nothing waits", [listed(ground, webhook)[k] for k in ("waiting", "given_up")], [0, 0])


def public(ground):
    """With the settings that tallyd comes with."""
    check = ground.check
    receiver = Receiver()
    for url in (receiver.url(), f"https://127.0.0.1:{receiver.port}/", "https://localhost/", "https://10.1.2.3/",
                "https://[::1]/", "https://u:p@hooks.example/", "ftp://hooks.example/", "http://hooks.example/"):
        check(f"refused: {url}", ground_fails(ground, "webhook", "create", url), 1)
    webhook = create(ground, "https://hooks.invalid/x")
    ground.authority.sql(f"UPDATE webhooks SET url = 'https://127.0.0.1:{receiver.port}/secret?secret'")
    connections = []
    listener = socket.create_server(("127.0.0.1", 0))
    ground.authority.sql(f"UPDATE webhooks SET url = 'https://localhost:{listener.getsockname()[1]}/secret?secret'")
    threading.Thread(target=lambda: connections.append(listener.accept()), daemon=True).start()
    check("a private address is not sent to", ground_fails(ground, "webhook", "test", webhook["webhook_id"]), 1)
    calls = Calls(ground)
    calls.parked("a")
    error = wait_for("it is told why", lambda: listed(ground, webhook)["last_error"])
    check("the error names the reason", "not of the public internet" in error, True)
    check("the error names no path", "secret" in error, False)
    check("nobody was connected to", connections, [])


WAYS = {"order": order, "killed": killed, "replicas": replicas, "public": public}


def main():
    way = sys.argv[1]
    with Ground(f"webhook-{way}", tables="" if way == "public" else ALLOWED) as ground:
        WAYS[way](ground)
        code = ground.report(f"webhooks, {way}")
    return code or (1 if ground.failures else 0)


sys.exit(main())
