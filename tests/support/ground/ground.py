"""Real processes for tests that break things: tallyd with its private database, any number of gateways, their
upstreams, and the wire between gateway and tallyd. All on loopback or unix sockets, in a folder of their own, and gone
when the ground is left. Python's standard library alone."""
import http.client
import json
import os
import pathlib
import re
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

UPSTREAM = str(pathlib.Path(__file__).resolve().parent / "upstream.py")
SKIP = 77
ERROR, CALL, KEY = "dev.tallystick/error", "dev.tallystick/call", "dev.tallystick/idempotency-key"
MODERN = "2026-07-28"


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIP)


def wait_for(what, condition, seconds=60):
    """Bounded, and long: nothing here is a promise about time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.03)
    raise AssertionError(f"{what}: not within {seconds} s")


class Wire:
    """Between gateway and tallyd, on a unix socket: passes bytes on, or keeps them back, each way by itself."""

    def __init__(self, path, target):
        self.path, self._target = path, target
        self.up, self.down = threading.Event(), threading.Event()  # set: bytes pass
        self.up.set()
        self.down.set()
        self.seen = {"up": 0, "down": 0}  # bytes that came, kept back or not
        self._lost = False
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(path)
        self._server.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self._server.accept()
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._target)
            except OSError:
                client.close()
                continue
            threading.Thread(target=self._pass, args=(client, server, "up"), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, "down"), daemon=True).start()

    def _pass(self, source, sink, way):
        try:
            while data := source.recv(65536):
                self.seen[way] += len(data)
                getattr(self, way).wait()
                if self._lost:
                    break
                sink.sendall(data)
            if way == "up":
                time.sleep(1)  # what was delivered late is read before the end is
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def lose(self):
        """What is kept back never arrives; connections after this one pass."""
        self._lost = True
        self.up.set()
        self.down.set()
        time.sleep(0.2)
        self._lost = False


class Agent:
    """An MCP client of either era over HTTP, which sends what it is told to."""

    def __init__(self, port, token, era="2025-11-25", capabilities=None):
        self.port, self.token, self.era = port, token, era
        self.capabilities = capabilities or {}
        self.session, self._last_id, self.events = None, 0, []
        self._lock = threading.Lock()
        self.heard = []  # every byte that came in a body
        if era != MODERN:
            answer = self.request("initialize", {"protocolVersion": era, "capabilities": self.capabilities,
                                                 "clientInfo": {"name": "t", "version": "1"}})
            assert "result" in answer, answer
            self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def headers(self, method="", name=""):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream"}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        if self.session or self.era == MODERN:
            headers["MCP-Protocol-Version"] = self.era
        if self.era == MODERN and method:
            headers["Mcp-Method"] = method
            if name:
                headers["Mcp-Name"] = name
        return headers

    def post(self, message, headers=None, timeout=60, on_message=None, body=None):
        """Status, and all messages that came. `on_message` sees each as it comes."""
        params = message.get("params", {}) if message else {}
        name = params.get("name") or params.get("uri", "") if isinstance(params, dict) else ""
        method = message.get("method", "") if message else ""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = body if body is not None else json.dumps(message).encode()
            connection.request("POST", "/mcp", data, {**self.headers(method, name), **(headers or {})})
            response = connection.getresponse()
            self.session = response.getheader("Mcp-Session-Id") or self.session
            return response.status, self.read(response, on_message)
        finally:
            connection.close()

    def read(self, response, on_message=None):
        messages = []

        def take(text):
            messages.append(json.loads(text))
            if on_message:
                on_message(messages[-1])

        if response.getheader("Content-Type", "").startswith("text/event-stream"):
            while line := response.readline():
                self.heard.append(line)
                if line.startswith(b"data:") and len(line) > 7:
                    take(line[5:])
                if line.startswith(b"id:"):
                    self.events.append(line[3:].strip().decode())
        else:
            text = response.read()
            self.heard.append(text)
            if text.strip().startswith(b"{"):
                take(text)
        return messages

    def request(self, method, params=None, timeout=60, on_message=None, headers=None):
        """The message with its answer."""
        with self._lock:
            self._last_id += 1
            number = self._last_id
        params = dict(params or {})
        if self.era == MODERN:
            params["_meta"] = {"io.modelcontextprotocol/protocolVersion": MODERN,
                               "io.modelcontextprotocol/clientCapabilities": self.capabilities,
                               "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                               **params.get("_meta", {})}
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        _, messages = self.post(message, timeout=timeout, on_message=on_message, headers=headers)
        for answer in messages:
            if answer.get("id") in (number, None) and ("result" in answer or "error" in answer):
                return answer
        return {}

    def call(self, tool, arguments, key=None, timeout=60, meta=None, on_message=None):
        meta = {**({KEY: key} if key else {}), **(meta or {})}
        return self.request("tools/call", {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})},
                            timeout=timeout, on_message=on_message)

    def stream(self, headers=None, timeout=60):
        """The general stream: a response to read lines from, and its connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        all_headers = {**self.headers(), "Accept": "text/event-stream", **(headers or {})}
        connection.request("GET", "/mcp", headers=all_headers)
        return connection.getresponse(), connection


class StdioAgent:
    """An MCP client on the standard streams of a gateway of its own; lines as they are."""

    def __init__(self, gateway, token, initialize=True):
        self.log = gateway.folder / f"stdio-log-{secrets.token_hex(4)}"
        with open(self.log, "ab") as file:
            self.process = gateway.ground.spawn(
                [gateway.ground.gateway, "serve", "--stdio", gateway.config], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=file, env={**os.environ, "TALLY_PERMIT_TOKEN": token})
        self._lines, self._new, self._seen = [], threading.Condition(), 0
        threading.Thread(target=self._read, daemon=True).start()
        if initialize:
            self.send({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
            assert "result" in self.next(), "initialize"
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _read(self):
        for line in self.process.stdout:
            with self._new:
                self._lines.append(line)
                self._new.notify_all()

    def send(self, message):
        self.send_raw(json.dumps(message).encode() + b"\n")

    def send_raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def next(self, wanted=lambda message: True, seconds=60):
        """The next message of that kind that was not looked at yet."""
        with self._new:
            for _ in range(100_000):
                if not self._new.wait_for(lambda: len(self._lines) > self._seen, seconds):
                    raise AssertionError("no more messages on standard output")
                self._seen += 1
                message = json.loads(self._lines[self._seen - 1])
                if wanted(message):
                    return message
        raise AssertionError("too many messages")

    def call(self, tool, arguments, number):
        self.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        return self.next(lambda message: message.get("id") == number)

    def rss_kb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))

    def end(self):
        """Its exit status after the end of its input."""
        self.process.stdin.close()
        return self.process.wait(60)


def text_of(answer):
    return "\n".join(part.get("text", "") for part in answer.get("result", {}).get("content", []))


def verdict(answer):
    """done, replayed, error, KIND/CODE of a refusal, or what a JSON-RPC error says."""
    if "error" in answer:
        data = (answer["error"].get("data") or {}).get(ERROR) if isinstance(answer["error"].get("data"), dict) else None
        return f"{data['kind']}/{data['code']}" if data else f"rpc {answer['error']['code']}"
    result = answer.get("result")
    if result is None:
        return "no answer"
    meta = result.get("_meta") or {}
    if ERROR in meta:
        return f"{meta[ERROR]['kind']}/{meta[ERROR]['code']}"
    if result.get("isError"):
        return "error"
    return "replayed" if (meta.get(CALL) or {}).get("replayed") else "done"


class Gateway:
    """One gateway process at a time, with a config and a journal that stay."""

    def __init__(self, ground, name, upstreams, top="", credential="gateway.credential", server=None,
                 address="127.0.0.1:0", lease_margin="1s"):
        self.ground, self.name = ground, name
        self.folder = ground.work / name
        self.folder.mkdir()
        self.process, self.port = None, 0
        self._runs = 0
        server = server or ground.socket
        text = f"""shutdown_grace = "1s"
[listen]
address = "{address}"
[tallyd]
server = "unix:{server}"
credential_file = "{ground.path(credential)}"
timeout = "8s"
try_timeout = "8s"
lease_margin = "{lease_margin}"
[permit]
view_ttl = "5m"
{top}
{upstreams}
"""
        (self.folder / "gateway.toml").write_text(text, encoding="utf-8")

    @property
    def config(self):
        return str(self.folder / "gateway.toml")

    def start(self, hold=None, limit=None):
        """`hold`: a folder for hold.c's orders. `limit`: descriptors, until it asks for more."""
        environment = self.ground.held(hold) if hold else dict(os.environ)
        self._runs += 1
        log = self.folder / f"log-{self._runs}"
        with open(log, "ab") as file:
            self.process = subprocess.Popen([self.ground.gateway, "serve", self.config], stdout=file, stderr=file,
                                            stdin=subprocess.DEVNULL, env=environment)
        if limit:
            hard = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)[1]
            resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (limit, hard))

        def port():
            if self.process.poll() is not None:
                raise AssertionError(f"the gateway ended: {log.read_text(encoding='utf-8')[-2000:]}")
            found = re.search(r'"port":"?(\d+)', log.read_text(encoding="utf-8"))
            return found and int(found.group(1))

        self.port = wait_for("the gateway listens", port)
        if hold:
            (pathlib.Path(hold) / "port").write_text(str(self.port), encoding="utf-8")
        return self

    def log(self):
        return (self.folder / f"log-{self._runs}").read_text(encoding="utf-8", errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        return self.process.wait(30)

    def stop(self):
        """Its exit status, by which sanitizers tell what they found; None if it had ended before."""
        if not self.process or self.process.poll() is not None:
            return None
        self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def rss_kb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


class Tallyd:
    """One process at a time, with a data folder that stays. `settings` go before the first table of its configuration,
    `tables` into the tables that stand there, or to its end."""

    def __init__(self, ground, name, settings="", tables="", like=None):
        """`like`: another, on whose database it is a further replica; its settings say where that is."""
        self.ground, self.folder = ground, ground.work / name
        self.socket, self.process = str(self.folder / "tallyd.sock"), None
        if like:
            self.folder.mkdir()
            shutil.copy(like.folder / "kek", self.folder / "kek")
            (self.folder / "tallyd.toml").write_text(f"{settings}\n{tables}\n", encoding="utf-8")
            return
        subprocess.run([ground.tallyd, "init", "--data-dir", str(self.folder)], check=True, timeout=120, capture_output=True)
        file = self.folder / "tallyd.toml"
        text = f"{settings}\n{file.read_text(encoding='utf-8')}\n"
        for table in re.split(r"^(?=\[)", tables, flags=re.M):
            header = table.split("\n", 1)[0]
            if header and f"\n{header}\n" in text:  # TOML takes a table once
                text = text.replace(f"\n{header}\n", f"\n{table.rstrip()}\n", 1)
            else:
                text += f"{table}\n"
        file.write_text(text, encoding="utf-8")

    def launch(self, environment=None):
        """Not waited for."""
        with open(f"{self.folder}.log", "ab") as log:
            self.process = subprocess.Popen([self.ground.tallyd, "serve", "--data-dir", str(self.folder)], stdout=log,
                                            stderr=log, env=environment)
        return self

    def start(self, environment=None):
        self.launch(environment)
        wait_for("tallyd serves", self.serves, 120)
        return self

    def serves(self):
        if self.process.poll() is not None:
            raise AssertionError(f"tallyd ended: {self.log()[-2000:]}")
        try:
            return self.ground.run_tally("--timeout", "1s", "tenant", "list", who="admin", server=self.socket) is not None
        except AssertionError:
            return False

    def log(self):
        return pathlib.Path(f"{self.folder}.log").read_text(encoding="utf-8", errors="replace")

    def kill(self):
        self.process.kill()
        return self.process.wait(30)

    def stop(self):
        """Its exit status, by which sanitizers tell what they found; None if it had ended before."""
        status = None
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                status = self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                status = self.process.wait()
        self.end_database(signal.SIGINT)
        return status

    @property
    def database_folder(self):
        """Where the socket of its private PostgreSQL lies."""
        return self.folder / "run"

    def sql(self, statement):
        """Rows of text, as the database's owner."""
        done = subprocess.run(["psql", "-XAt", f"host={self.database_folder} user=tally dbname=tally", "-c", statement],
                              capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.splitlines()

    def database_pid(self):
        """Of its private PostgreSQL's first process; None: none runs."""
        try:
            pid = int((self.folder / "pg/postmaster.pid").read_text(encoding="ascii").split()[0])
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return pid if str(self.folder / "postgres.conf").encode() in file.read() else None
        except (OSError, ValueError, IndexError):
            return None

    def processes(self):
        """Its own, and those of its private PostgreSQL."""
        database = self.database_pid()
        return [self.process.pid, *children_of(self.process.pid), *([database, *children_of(database)] if database else [])]

    def end_database(self, how):
        """A tallyd that was killed leaves it behind."""
        pid = self.database_pid()
        if pid:
            for one in ([pid] if how == signal.SIGINT else [pid, *children_of(pid)]):
                try:
                    os.kill(one, how)
                except ProcessLookupError:
                    pass
            wait_for("the database is gone", lambda: not os.path.exists(f"/proc/{pid}") or state_of(pid) == "Z")


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return -1  # it has just gone


def children_of(parent):
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == parent]


class Ground:
    """`settings` and `tables` are tallyd's: see Tallyd."""

    def __init__(self, name="adverse", settings="", tables=""):
        binaries = pathlib.Path(os.environ.get("TALLY_BIN", ""))
        self.tallyd, self.tally, self.gateway = (str(binaries / name) for name in ("tallyd", "tally", "tally-gateway"))
        self.reconciler = str(binaries / "tally-reconciler")  # for those tests that need it
        for program in (self.tallyd, self.tally, self.gateway):
            if not os.access(program, os.X_OK):
                sys.exit(f"{program} is not there: TALLY_BIN says where the programs lie")
        # Short, for a socket's path may have 107 bytes; and user postgres, who runs the database for root, passes through.
        self.work = pathlib.Path(tempfile.mkdtemp(prefix=f"tally-{name}."))
        self.work.chmod(0o711)
        self.socket = self.path("d/tallyd.sock")
        self.failures = 0
        self._settings, self._tables = settings, tables
        self.authority, self._authorities, self._gateways, self._processes = None, [], [], []

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        try:
            os.umask(0o077)
            self.authority = self.add_tallyd("d", self._settings, self._tables).start()
            self.add_tenant("acme", "")
        except BaseException:
            self.__exit__(True, None, None)
            raise
        return self

    def __exit__(self, kind, error, trace):
        for gateway in self._gateways:
            if gateway.process and gateway.process.poll() is None:
                gateway.signal(signal.SIGCONT)
            status = gateway.stop()
            self.check(f"gateway {gateway.name} ends by itself", status, lambda s: s in (0, None))
        for process in self._processes:
            process.kill()
            process.wait()
        # The first owns the database that others may use.
        for authority in reversed(self._authorities):
            self.check(f"{authority.folder.name} ends by itself", authority.stop(), lambda s: s in (0, None))
        if kind or self.failures:
            print(f"logs and data are kept in {self.work}")
        else:
            shutil.rmtree(self.work, ignore_errors=True)

    def check(self, what, got, wanted):
        good = wanted(got) if callable(wanted) else got == wanted
        if not good:
            self.failures += 1
            print(f"NOT AS PROMISED: {what}: {json.dumps(got, default=str)[:900]}", flush=True)
        return good

    def path(self, name):
        return str(self.work / name)

    def preload(self):
        library = os.environ.get("TALLY_HOLD", "")
        if not os.path.exists(library):
            skip("TALLY_HOLD does not name the library that kills at a system call")
        return library

    def held(self, folder, environment=None):
        """The environment of a program that obeys orders in `folder`: see hold.c."""
        environment = {**os.environ, **(environment or {})}
        environment.update(LD_PRELOAD=self.preload(), HOLD_DIR=str(folder))
        # Its calls go on to AddressSanitizer's, whose runtime else insists on being the first library.
        environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return environment

    def skewed(self, seconds):
        """The environment of a program whose wall clock is wrong by that: see skew.c."""
        library = os.environ.get("TALLY_SKEW", "")
        if not os.path.exists(library):
            skip("TALLY_SKEW does not name the library that makes clocks wrong")
        return {**os.environ, "LD_PRELOAD": library, "SKEW_SECONDS": str(seconds),
                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}

    def run_tally(self, *arguments, who="operator", stdin=None, server=None):
        credential = self.path("d/admin.credential" if who == "admin" else f"{who}.credential")
        environment = os.environ | {"TALLY_SERVER": f"unix:{server or self.socket}", "TALLY_CREDENTIAL": credential}
        done = subprocess.run([self.tally, "-o", "json", *arguments], capture_output=True, text=True, env=environment,
                              timeout=60, check=False, input=stdin)
        if done.returncode:
            raise AssertionError(f"tally {' '.join(arguments)}: {done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def add_tallyd(self, name, settings="", tables="", like=None):
        self._authorities.append(Tallyd(self, name, settings, tables, like))
        return self._authorities[-1]

    def add_tenant(self, name, prefix):
        self.run_tally("tenant", "create", name, who="admin")
        for role in ("operator", "gateway", "reconciler", "auditor"):
            self.run_tally("principal", "create", "--role", role, "--tenant", name, "--out",
                           self.path(f"{prefix}{role}.credential"), who="admin")

    def mint(self, grants, tenant="acme", who="operator", budget="1000000"):
        """Permit id and token. `grants`: {tool: lines of TOML}."""
        name = secrets.token_hex(6)
        text = (f'tenant = "{tenant}"\nsubject = "{name}"\nunit = "USD/2"\nbudget = {budget}\nexpires_in = "24h"\n')
        for tool, settings in grants.items():
            text += f'[[grant]]\ntool = "{tool}"\nbudget = "unlimited"\n{settings}\n'
        file, token = self.work / f"{name}.toml", self.work / f"{name}.token"
        file.write_text(text, encoding="utf-8")
        permit = self.run_tally("permit", "mint", "-f", str(file), "--out", str(token), who=who)["permit_id"]
        return permit, token.read_text(encoding="utf-8").strip()

    def calls(self, permit, who="operator"):
        """All calls of a permit, by key."""
        calls, token = {}, ""
        for _ in range(1000):
            page = self.run_tally("call", "list", "--permit", permit, *(["--page-token", token] if token else []), who=who)
            for call in page.get("calls", []):
                calls[call["key"]] = call
            token = page.get("next_page_token", "")
            if not token:
                break
        return calls

    def parked(self, permit, who="operator"):
        return {entry["call"]["key"]: entry["call"]
                for entry in self.run_tally("parked", "list", "--permit", permit, who=who).get("parked", [])}

    def resolve(self, call, verdict_word, who="operator"):
        """By hand, as an operator who has seen the ledger."""
        evidence = self.work / "evidence"
        evidence.write_text("the ledger was read", encoding="utf-8")
        self.run_tally("parked", "resolve", call["state_receipt_id"], "--verdict", verdict_word, "--source", "ledger",
                       "--reference", "effects", "--evidence", f"@{evidence}", "--reason", "seen in the ledger", who=who)

    def add_gateway(self, name, upstreams, **options):
        gateway = Gateway(self, name, upstreams, **options)
        self._gateways.append(gateway)
        return gateway

    def spawn(self, command, **options):
        process = subprocess.Popen(command, **options)
        self._processes.append(process)
        return process

    def ledger(self):
        return self.path("effects")

    def effects(self, text=None):
        file = pathlib.Path(self.ledger())
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return lines if text is None else lines.count(text)

    def stdio_upstream(self, name="led", more=""):
        return (f'[upstreams.{name}]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(UPSTREAM)}]\n'
                f'env = {{ LEDGER = {json.dumps(self.ledger())} }}\n{more}\n')

    def http_upstream(self, name="led", more=""):
        """One server process for all sessions of it."""
        log = open(self.work / f"{name}.log", "ab")  # pylint: disable=consider-using-with
        process = self.spawn([sys.executable, UPSTREAM, "--http"], stdout=subprocess.PIPE, stderr=log,
                             env={**os.environ, "LEDGER": self.ledger()})
        port = int(process.stdout.readline())
        return f'[upstreams.{name}]\nurl = "http://127.0.0.1:{port}/mcp"\n{more}\n'

    def report(self, what):
        print(f"{what}: {self.failures} promises broken", flush=True)
        return 1 if self.failures else 0
