"""What the tests of tally-reconciler stand on: tallyd, a provider, parked calls made by gRPC as a gateway makes them, and
reconcilers as processes."""
import hashlib
import json
import os
import pathlib
import re
import secrets
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/ground"))
from ground import Ground, skip, wait_for  # pylint: disable=wrong-import-position

sys.path.insert(0, os.environ.get("TALLY_PYTHON", ""))
try:
    import grpc
    from tally.v1 import calls_pb2, calls_pb2_grpc, common_pb2, parked_pb2, parked_pb2_grpc, receipt_pb2
except ImportError as error:
    skip(f"no gRPC for Python: {error}")

COST = 10
GRANT = f'cap = "unlimited"\ncost = {{ fixed = {COST} }}\nlease = "60s"\nsend_within = "1s"\nmax_attempts = 5'
FINDING = {1: "HAPPENED", 2: "NOT_HAPPENED", 3: "ABSENT", 4: "PENDING", 5: "UNCLEAR"}
ENDS = {receipt_pb2.CALL_RESOLVED_HAPPENED, receipt_pb2.CALL_RESOLVED_NOT_HAPPENED}
PROVIDER = """
[[provider]]
name = "{name}"
concurrency = {concurrency}
per_second = 1000
allow_private = {private}
allow_http = true
"""
ANSWER = """
[tool.answer]
records = "/data"
match = { pointer = "/metadata/ref", equals = "{reference}" }
complete = { pointer = "/has_more", is = "false" }
status = "/status"
happened = ["succeeded"]
not_happened = ["failed"]
pending = ["pending"]
amount = { pointer = "/amount", form = "minor" }
result = "/id"
provider_id = "/id"
"""


class Provider:
    def __init__(self, ground):
        process = ground.spawn([sys.executable, str(HERE / "provider.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(process.stdout.readline())

    def post(self, path, document):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(document).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return json.load(answer)

    def land(self, call, **order):
        self.post("/land", {"ref": call["reference"], **order})

    def behave(self, call, mode):
        self.post("/behave", {"ref": call["reference"] if call else "*", "mode": mode})

    def asked(self, call):
        return [entry for entry in self.get("/asked") if entry["asked"].get("ref") == [call["reference"]]]

    def tool(self, name, path="/search?ref={reference}", provider="bank", absent="2s", more="", http="", answer=ANSWER):
        return (f'[[tool]]\ntool = "{name}"\nlook_up = "http"\nprovider = "{provider}"\ntimeout = "1s"\n'
                f'absent_is_final_after = "{absent}"\n{more}\n[tool.http]\nurl = "http://127.0.0.1:{self.port}{path}"\n{http}\n'
                f'{answer}\n')


class Reconciler:
    def __init__(self, stage, name, tools, settings=""):
        self.stage, self.runs, self.process = stage, 0, None
        self.folder = stage.ground.work / name
        self.folder.mkdir()
        self.config = self.folder / "reconciler.toml"
        self.program = str(pathlib.Path(os.environ["TALLY_BIN"]) / "tally-reconciler")
        self.config.write_text(f"""log_level = "debug"
[tallyd]
server = "unix:{stage.ground.socket}"
credential_file = "{stage.ground.path('reconciler.credential')}"
timeout = "5s"
[reconciler]
workers = 6
poll = "100ms"
claim = "4s"
backoff_min = "100ms"
backoff_max = "600ms"
absent_spacing = "500ms"
{settings or 'give_up_after = "120s"'}
{PROVIDER.format(name="bank", concurrency=4, private="true")}
{PROVIDER.format(name="public", concurrency=4, private="false")}
{tools}
""", encoding="utf-8")

    def start(self):
        self.runs += 1
        with open(self.folder / f"log-{self.runs}", "ab") as log:
            self.process = self.stage.ground.spawn([self.program, "serve", str(self.config)], stdout=log, stderr=log,
                                                   stdin=subprocess.DEVNULL)
        return self

    def log(self):
        return "\n".join((self.folder / f"log-{run + 1}").read_text(encoding="utf-8") for run in range(self.runs))

    def started(self):
        wait_for("the reconciler starts", lambda: '"event":"started"' in
                 (self.folder / f"log-{self.runs}").read_text(encoding="utf-8"))
        return self

    def kill(self):
        self.process.kill()
        self.process.wait(30)

    def stop(self):
        """Its exit status, by which sanitizers tell what they found."""
        self.process.terminate()
        return self.process.wait(60)

    def run(self, command):
        return subprocess.run([self.program, command, str(self.config)], capture_output=True, text=True, timeout=60,
                              check=False)


class Stage:
    def __init__(self, ground):
        self.ground = ground
        self.provider = Provider(ground)
        self.permit, self.token = ground.mint({"t__*": GRANT})
        self.connect()
        self.calls = []

    def connect(self):
        channel = grpc.insecure_channel(f"unix:{self.ground.socket}")
        self.calls_stub = calls_pb2_grpc.CallsStub(channel)
        self.parked_stub = parked_pb2_grpc.ParkedCallsStub(channel)

    def who(self, role):
        credential = pathlib.Path(self.ground.path(f"{role}.credential")).read_text(encoding="utf-8").strip()
        return {"metadata": (("authorization", f"Bearer {credential}"),), "timeout": 30, "wait_for_ready": True}

    def authorize(self, tool, arguments, key, lease_ms=1000):
        attempt = secrets.token_bytes(16)
        answer = self.calls_stub.Authorize(calls_pb2.AuthorizeRequest(
            permit_token=self.token, key=key, attempt_id=attempt, tool=tool, arguments=json.dumps(arguments).encode(),
            lease_ms=lease_ms), **self.who("gateway"))
        return attempt, answer

    def park(self, tool, arguments=None, key=None):
        """A call that was sent and never answered. What became of it is for the test to say, by the provider's ledger."""
        key = key or f"key-{len(self.calls)}"
        arguments = {"n": len(self.calls), **(arguments or {})}
        attempt, answer = self.authorize(tool, arguments, key)
        assert answer.disposition == common_pb2.DISPATCH, answer
        self.commit(answer.call_id, attempt, calls_pb2.OUTCOME_UNCERTAIN, sent_at_us=int(time.time() * 1e6))
        reference = hashlib.sha256(b"tallystick/provider-reference/v1\0" + answer.call_id.encode()).hexdigest()[:32]
        call = {"id": answer.call_id, "key": key, "tool": tool, "arguments": arguments, "attempt": attempt,
                "reference": reference}
        self.calls.append(call)
        return call

    def commit(self, call_id, attempt, outcome, **more):
        return self.calls_stub.Commit(calls_pb2.CommitRequest(call_id=call_id, attempt_id=attempt, outcome=outcome, **more),
                                      **self.who("gateway"))

    def info(self, call):
        return self.calls_stub.GetCall(calls_pb2.GetCallRequest(call_id=call["id"]), **self.who("operator"))

    def state(self, call):
        return common_pb2.CallState.Name(self.info(call).state)

    def parked(self, call):
        """As tallyd shows it, or None."""
        try:
            found = self.parked_stub.List(parked_pb2.ListParkedRequest(call_id=call["id"]), **self.who("operator")).parked
        except grpc.RpcError as refused:
            if refused.code() != grpc.StatusCode.NOT_FOUND:
                raise
            found = []
        return found[0] if found else None

    def findings(self, call):
        parked = self.parked(call)
        return [FINDING[look_up.finding] for look_up in parked.look_ups] if parked else []

    def noted(self, call):
        """Of a call that is parked no more."""
        for receipt in self.info(call).receipts:
            payload = receipt_pb2.ReceiptPayload()
            payload.ParseFromString(receipt.payload)
            if payload.kind == receipt_pb2.CALL_UNCERTAIN:
                found = self.parked_stub.List(parked_pb2.ListParkedRequest(uncertain_receipt_id=receipt.receipt_id),
                                              **self.who("operator")).parked
                return [FINDING[look_up.finding] for look_up in found[0].look_ups] if found else []
        return []

    def escalated(self, call):
        parked = self.parked(call)
        return bool(parked and parked.escalated)

    def resolutions(self, call):
        """Of the last attempt, by its receipts."""
        kinds = []
        for receipt in self.info(call).receipts:
            payload = receipt_pb2.ReceiptPayload()
            payload.ParseFromString(receipt.payload)
            kinds.append(payload.kind)
        return [receipt_pb2.ReceiptKind.Name(kind) for kind in kinds if kind in ENDS]

    def await_state(self, call, state, seconds=90):
        wait_for(f"{call['tool']} {call['key']} {call['arguments']} is {state}", lambda: self.state(call) == state, seconds)

    def replay(self, call):
        return self.authorize(call["tool"], call["arguments"], call["key"])[1]


def logged(text, event):
    return [json.loads(line) for line in text.splitlines() if f'"event":"{event}"' in line]


def sound(log):
    """No sanitizer has spoken, and nothing an agent wrote stands in it."""
    return not re.search(r"ERROR: \w+Sanitizer|runtime error:|AGENT-WROTE", log)
