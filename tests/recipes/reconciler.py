"""tally-reconciler beside the ground of tests/support: a process with a config of its own, and the shop that it asks."""
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/ground"))
from ground import verdict  # noqa: E402


class Reconciler:
    """One process at a time, with a config that stays. `folder`: where the config and what it names lie."""

    def __init__(self, ground, name, folder, config):
        self.ground, self.name, self.folder = ground, name, folder
        self.program = str(pathlib.Path(os.environ.get("TALLY_BIN", "")) / "tally-reconciler")
        self.config = folder / f"{name}.toml"
        self.config.write_text(config, encoding="utf-8")
        self.process, self._runs = None, 0

    def check(self):
        """`tally-reconciler check`: its exit status and output."""
        done = subprocess.run([self.program, "check", str(self.config)], capture_output=True, text=True, timeout=60,
                              check=False)
        return done.returncode, done.stdout + done.stderr

    def start(self):
        self._runs += 1
        log = self.folder / f"{self.name}-log-{self._runs}"
        with open(log, "ab") as file:
            self.process = subprocess.Popen([self.program, "serve", str(self.config)], stdout=file, stderr=file,
                                            stdin=subprocess.DEVNULL)
        return self

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        return (self.folder / f"{self.name}-log-{self._runs}").read_text(encoding="utf-8", errors="replace")

    def looks(self, call_id):
        """Its log's lines about look-ups of a call, oldest first."""
        lines = [json.loads(line) for line in self.log().splitlines() if line.startswith("{") and line.endswith("}")]
        return [line for line in lines if line["event"] == "look_up" and line["call_id"] == call_id]

    def kill(self):
        self.process.kill()
        return self.process.wait(30)

    def stop(self):
        """Its exit status, by which sanitizers tell what they found; None if it does not run."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        status, self.process = self.process.returncode, None
        return status


def ask_until_sent(ask):
    """The answer to a call. A refusal that says that nothing was sent, as a busy machine brings it about, is asked again."""
    for _ in range(20):
        answer = ask()
        if not verdict(answer).startswith("unavailable/"):
            break
        time.sleep(0.5)
    return answer


def open_shop(ground, **environment):
    """The shop's process, and its port."""
    log = open(ground.work / "shop.log", "ab")  # pylint: disable=consider-using-with
    process = ground.spawn([sys.executable, str(HERE / "shop.py")], stdout=subprocess.PIPE, stderr=log,
                           env={**os.environ, "LEDGER": ground.path("ledger"), **environment})
    return process, int(process.stdout.readline())


def database_of(ground):
    """How psql reaches tallyd's private PostgreSQL, where the shop keeps a table of its own."""
    return {"PGHOST": str(ground.authority.database_folder), "PGUSER": "tally", "PGDATABASE": "tally"}
