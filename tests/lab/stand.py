"""One column of a scenario: the provider, the wire to it, the agents, and whatever stands between. All real processes, on
loopback, in a folder of their own."""
import contextlib
import dataclasses
import json
import pathlib
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/ground"))
from ground import Ground, Wire, state_of, wait_for  # pylint: disable=unused-import  # for scenarios and the lab
from measure import lines, measure, stories

COLUMNS = {"A": "agent to tool, naive", "B": "agent to a tool that honours a durable idempotency key",
           "C": "B behind tally-gateway", "D": "the naive tool behind tally-gateway", "E": "D with the reconciler"}
OURS = "CDE"
AMOUNT = 100
# Seconds at pace 1: the gateway gives up before its clients do, as its documentation says.
AGENT_TIMEOUT, SEND_WITHIN, LEASE, ABSENT_IS_FINAL_AFTER = 5, 3, 8, 5


@dataclasses.dataclass
class Caller:
    """See agent.py. Pauses, delay and timeout at pace 1."""
    customer: str
    amount: int = AMOUNT
    name: str = ""
    key: str = None
    again: str = "same"
    fresh_argument: str = ""
    until: str = "success"
    pauses: tuple = (1, 1)
    timeout: float = AGENT_TIMEOUT
    delay: float = 0
    more: dict = dataclasses.field(default_factory=dict)

    def order(self, pace):
        return {"name": self.name or self.customer, "arguments": {"customer": self.customer, "amount": self.amount, **self.more},
                "key": self.key, "again": self.again, "fresh_argument": self.fresh_argument, "until": self.until,
                "pauses": [pause * pace for pause in self.pauses], "timeout": self.timeout * pace, "delay": self.delay}


class Agents:
    """A process of agent.py."""

    def __init__(self, stand, callers, port, held):
        self._stand = stand
        self._go = stand.folder / f"go-{secrets.token_hex(4)}"
        self._process = stand.spawn([sys.executable, str(HERE / "agent.py")], stdin=subprocess.PIPE,
                                    stderr=open(stand.folder / "agents.err", "ab"))  # pylint: disable=consider-using-with
        order = {"port": port, "token": stand.token, "tool": stand.tool, "log": str(stand.folder / "agents"),
                 "go": str(self._go) if held else None, "callers": [caller.order(stand.pace) for caller in callers]}
        self._process.stdin.write(json.dumps(order).encode())
        self._process.stdin.close()

    def ready(self):
        wait_for("agents are ready", lambda: any(line["event"] == "ready" and line["pid"] == self._process.pid
                                                 for line in lines(self._stand.folder / "agents")))
        return self

    def go(self):
        self._go.touch()
        return self

    def wait(self, seconds=240):
        status = self._process.wait(seconds)
        assert status in (0, -signal.SIGKILL), f"agent.py ended with {status}"

    def ended(self):
        return self._process.poll() is not None

    def signal(self, number):
        self._process.send_signal(number)

    def kill(self):
        self._process.kill()
        self._process.wait(30)


class Stand:
    def __init__(self, column, scenario, ground, pace, seed):
        self.column, self.scenario, self.ground, self.pace, self.seed = column, scenario, ground, pace, seed
        self.ours, self.keyed = column in OURS, column in "BC"
        self.folder = ground.work / f"{scenario.id}-{column}"
        self.folder.mkdir()
        self.meant, self.permitted, self.notes = {}, None, {}
        self.permit, self.token, self.tool = None, "none", "refund"
        self.tenant, self.prefix = "acme", ""
        self.gateways, self.reconcilers, self._processes, self._callers = [], [], [], {}
        flags = ["--keyed"] if self.keyed else []
        self.provider_port = self._port_of("provider", [sys.executable, str(HERE / "provider.py"), str(self.folder), *flags])
        self.wire_port = self._port_of("proxy", [sys.executable, str(HERE / "fault_proxy.py"), str(self.folder),
                                                 str(self.provider_port)])
        if self.ours:
            self.tool = "pay__refund"
            if column == "E":
                # A reconciler works on all of its tenant's calls.
                self.tenant, self.prefix = f"{scenario.id}-e".lower(), f"{scenario.id}-e-"
                ground.add_tenant(self.tenant, self.prefix)
                self.reconciler()
            self.mint(scenario.grant)

    # ------------------------------------------------------------ processes

    def spawn(self, command, **options):
        process = subprocess.Popen(command, **options)
        self._processes.append(process)
        return process

    def _port_of(self, name, command):
        with open(self.folder / f"{name}.err", "ab") as log:
            return int(self.spawn(command, stdout=subprocess.PIPE, stderr=log).stdout.readline())

    def mint(self, grant=""):
        """A new permit for another subject."""
        lease, window = self.ms(LEASE * (3 if self.keyed else 1)), self.ms(SEND_WITHIN)
        terms = {"cap": "100", "cost": '{ pointer = "/amount" }', "per_call": "1000", "lease": f'"{lease}"',
                 "send_within": f'"{window}"', "intent_ignore": '["/idempotency_key"]', **(grant or {})}
        self.permit, self.token = self.ground.mint(
            {"pay__refund": "\n".join(f"{name} = {value}" for name, value in terms.items())}, self.tenant, f"{self.prefix}operator")

    def run_tally(self, *arguments, who="operator"):
        return self.ground.run_tally(*arguments, who=self.prefix + who)

    def reconciler(self):
        """As its operator would set it up, but quicker: the look-up finds a refund by the reference that the gateway sent."""
        file = self.folder / "reconciler.toml"
        file.write_text(f"""[tallyd]
server = "unix:{self.ground.socket}"
credential_file = "{self.ground.path(self.prefix + 'reconciler.credential')}"
[reconciler]
poll = "200ms"
claim = "20s"
backoff_min = "500ms"
backoff_max = "1s"
absent_spacing = "1s"
[[provider]]
name = "payments"
per_second = 100
allow_private = true
allow_http = true
[[tool]]
tool = "pay__refund"
look_up = "http"
provider = "payments"
timeout = "5s"
absent_is_final_after = "{self.ms(ABSENT_IS_FINAL_AFTER)}"
[tool.http]
url = "http://127.0.0.1:{self.provider_port}/refunds?reference={{reference}}"
[tool.answer]
records = "/refunds"
match = {{ pointer = "/reference", equals = "{{reference}}" }}
record_is = "happened"
amount = {{ pointer = "/amount", form = "minor" }}
result = "/text"
""", encoding="utf-8")
        with open(self.folder / "reconciler.log", "ab") as log:
            self.reconcilers.append(self.spawn([self.ground.reconciler, "serve", str(file)], stdout=log, stderr=log,
                                               stdin=subprocess.DEVNULL))

    def ms(self, seconds):
        return f"{int(seconds * self.pace * 1000)}ms"

    def seconds(self, seconds):
        """Sleeps them, at this pace."""
        time.sleep(seconds * self.pace)

    def gateway(self, name="g", server=None, start=True, **options):
        """A gateway before the wire. It keeps its port, so that callers find it again."""
        # Taken by nobody else: outside the range from which the kernel gives ports away.
        port = free_port()
        keyed = f'replay = "keyed"\nkey = {self.scenario.key_place}\nreplay_window = "24h"\n' if self.keyed else ""
        more = 'reference = { header = "X-Reference" }' if self.column == "E" else ""
        upstream = (f'[upstreams.pay]\nurl = "http://127.0.0.1:{self.wire_port}/mcp"\n[upstreams.pay.tools.refund]\n'
                    f'timeout = "{self.ms(self.scenario.tool_timeout)}"\n{keyed}{more}\n')
        gateway = self.ground.add_gateway(f"{self.scenario.id}-{self.column}-{name}", upstream, server=server,
                                          address=f"127.0.0.1:{port}", credential=f"{self.prefix}gateway.credential", **options)
        self.gateways.append(gateway)
        return gateway.start() if start else gateway

    @property
    def port(self):
        """Where agents call: the first gateway, or the wire itself."""
        if not self.ours:
            return self.wire_port
        if not self.gateways:
            self.gateway()
        return self.gateways[0].port

    def agents(self, *callers, port=None, held=False):
        """A process. `held`: it waits for go()."""
        self._callers.update({caller.name or caller.customer: caller for caller in callers})
        return Agents(self, callers, port or self.port, held)

    def call(self, *callers, port=None):
        """To the end of their loops."""
        self.agents(*callers, port=port).wait()

    # ------------------------------------------------------------ what breaks

    def faults(self, **by_customer):
        """See fault_proxy.py. Seconds at pace 1."""
        self._write("faults.json", self._at_pace(by_customer))

    def behaves(self, look_up_lag=0, **by_customer):
        """See provider.py. Seconds at pace 1."""
        self._write("behaviour.json", self._at_pace({"refunds": by_customer, "look_up_lag": look_up_lag}))

    def _at_pace(self, value):
        if isinstance(value, dict):
            return {name: one * self.pace if name in ("late", "before", "after", "dribble", "look_up_lag")
                    else self._at_pace(one) for name, one in value.items()}
        return [self._at_pace(one) for one in value] if isinstance(value, list) else value

    @contextlib.contextmanager
    def loris(self, number):
        """Clients that begin a request and send a byte of it now and then, for as long as it lasts."""
        sockets, ended = [], threading.Event()
        for _ in range(number):
            one = socket.create_connection(("127.0.0.1", self.port))
            one.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            sockets.append(one)

        def trickle():
            while not ended.wait(1):
                for one in sockets:
                    try:
                        one.send(b"a")
                    except OSError:
                        pass  # shown the door
        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            for one in sockets:
                one.close()

    def hold_order(self, folder, order):
        """To a program that was started with that folder: see hold.c."""
        (folder / "order.new").write_text(order + "\n", encoding="ascii")
        (folder / "order.new").rename(folder / "order")

    def _write(self, name, value):
        (self.folder / f"{name}.new").write_text(json.dumps(value), encoding="utf-8")
        (self.folder / f"{name}.new").rename(self.folder / name)

    # ------------------------------------------------------------ what there is to see

    def effects(self, customer):
        return sum(line["customer"] == customer for line in lines(self.folder / "effects"))

    def effects_all(self):
        return lines(self.folder / "effects")

    def dispatches(self, customer):
        return sum(line.get("customer") == customer for line in lines(self.folder / "wire"))

    def wait_dispatched(self, customer, times=1):
        wait_for(f"{customer}'s call is on the wire", lambda: self.dispatches(customer) >= times)

    def wait_landed(self, customer):
        """Until the provider has had every request that the wire kept back."""
        late = max([line["t"] + fault["late"] for line in lines(self.folder / "wire") if line.get("customer") == customer
                    for fault in [line["fault"].get("request")] if isinstance(fault, dict)], default=0)
        time.sleep(max(0, late + 0.5 - time.monotonic()))

    def wait_done(self, customer, times=1):
        wait_for(f"{customer}'s refund is carried out", lambda: self.effects(customer) >= times)

    def look_up(self, customer):
        """How many refunds the provider's search finds."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.provider_port}/refunds?customer={customer}", timeout=30) as answer:
            return len(json.load(answer)["refunds"])

    def calls(self):
        return self.ground.calls(self.permit, f"{self.prefix}operator")

    def state(self, key):
        return self.calls().get(key, {}).get("state")

    def parked(self):
        """Contradicted calls are listed with them, for a person; here they do not count."""
        return {key: call for key, call in self.ground.parked(self.permit, f"{self.prefix}operator").items() if call["state"] == "UNCERTAIN"}

    def wait_parked(self, key, attempt=1):
        def parked():
            call = self.parked().get(key)
            return call if call and call["attempts"][-1]["number"] == attempt else None
        return wait_for(f"attempt {attempt} of {key} is parked", parked, 120)

    def judge(self, key, verdict, attempt=1):
        """Of a parked attempt: by a person in D and C, by the reconciler in E, who is only waited for."""
        if self.column != "E":
            self.resolve(self.wait_parked(key, attempt), verdict)
            return
        ends = {"happened": "SUCCEEDED", "not-happened": "NOT_HAPPENED"}
        wait_for(f"the reconciler closes {key}", lambda: self.state(key) == ends[verdict], 180)

    def resolve(self, call, verdict):
        """A person's word."""
        self.ground.resolve(call, verdict, f"{self.prefix}operator")

    def wait_contradicted(self, key):
        wait_for(f"it is seen that {key} had happened", lambda: self.calls()[key]["contradicted"], 120)

    def charged(self):
        return self.run_tally("permit", "show", self.permit)["budget"]["spent"]

    def come_back(self):
        """Those who were told to wait ask once more, with the key that they had."""
        waiting = [dataclasses.replace(self._callers[name], key=story.key, again="same", delay=0, pauses=(2, 2))
                   for name, story in stories(lines(self.folder / "agents")).items() if story.state == "uncertain"]
        if waiting:
            self.call(*waiting, port=self.gateways[-1].port)

    def note(self, **found):
        """Further figures of this column."""
        self.notes.update(found)

    # ------------------------------------------------------------ the end

    def settle(self):
        """Until no attempt is under way any more."""
        wait_for("no lease is left", lambda: all(call["state"] != "AUTHORIZED" for call in self.calls().values()), 90)

    def result(self):
        if self.ours:
            self.settle()
        if self.column == "E":
            wait_for("the reconciler has closed what was parked", lambda: not self.parked(), 180)
            self.come_back()
            self.settle()
        result = measure(self.folder, self.meant, self.permitted)
        if self.ours:
            result.update(self.authority_says())
        else:
            result.update(holds=0, receipts=0)
        result.update(self.notes)
        return result

    def authority_says(self):
        shown, parked = self.run_tally("permit", "show", self.permit), self.parked()
        assert shown["open_calls"] == len(parked), f"{shown['open_calls']} calls open, {len(parked)} parked"
        out = self.folder / "receipts"
        self.run_tally("receipt", "export", "--permit", self.permit, "--out", str(out), who="auditor")
        files = sorted(out.glob("*.dsse.json"))
        verified = subprocess.run([self.ground.tally, "receipt", "verify", *files, "--keys", out / "keys.json"],
                                  capture_output=True, text=True, timeout=120, check=False)
        if verified.returncode:
            (self.folder / "verify.out").write_text(verified.stdout + verified.stderr, encoding="utf-8")
        return {"holds": shown["open_calls"], "held": shown["budget"]["held"], "spent": shown["budget"]["spent"],
                "receipts": len(files), "receipts_verify": verified.returncode == 0}

    def close(self):
        for gateway in self.gateways:
            if gateway.process and gateway.process.poll() is None:
                gateway.signal(signal.SIGCONT)
            status = gateway.stop()
            self.ground.check(f"gateway {gateway.name} ends by itself", status, lambda s: s in (0, None))
        for process in self.reconcilers:
            if process.poll() is None:
                process.terminate()
                status = process.wait(60)
                self.ground.check(f"the reconciler of {self.scenario.id} ends by itself", status, 0)
            else:
                self.ground.check(f"the reconciler of {self.scenario.id} runs to the end", process.returncode, None)
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def free_port():
    for _ in range(100):
        port = 20000 + secrets.randbelow(10000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no free port")
