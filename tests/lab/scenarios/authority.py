"""The authority and its database: killed, cut off, full, with a wrong clock, without its key. Columns A and B have neither:
they run the same load, for comparison."""
import os
import pwd
import random
import resource
import shutil
import subprocess
import time

from scenario import scenario
from stand import Caller, Wire, wait_for

DAY = 86400
STEPS = 16
LOAD = 24


def all_done(number, **more):
    """In every column, whatever breaks."""
    plain = {"effects": number, "duplicates": 0, "confirmed": number}
    ours = {**plain, "uncertain": 0, "holds": 0}
    return {"A": plain, "B": plain, "C": {**ours, **more}, "D": {**ours, "dispatches": number, **more}}


def load(stand, seconds):
    """Callers in four processes, who come one after the other for that long."""
    chance = random.Random(f"{stand.seed} {stand.scenario.id}")
    callers = [Caller(f"customer-{i}", key=f"job-{i}", delay=chance.uniform(0, seconds) * stand.pace, timeout=20, pauses=(1,) * 30)
               for i in range(LOAD)]
    agents = [stand.agents(*callers[i::4], held=True) for i in range(4)]
    for one in agents:
        one.ready()
    for one in agents:
        one.go()
    return agents


@scenario("L08", "tallyd killed at each durable step",
          "what was answered is in the database, what was not is asked again with the same key and attempt id: no step loses a decision "
          "or makes a second one",
          all_done(STEPS + 1, kills=[STEPS * 3 // 4, STEPS]), private=True)
def tallyd_killed(stand):
    """Killed before a message to the database or to the gateway: those of a call, from its first question to the end of its
    commit, are counted first, and the kills spread over them."""
    authority = stand.ours and stand.ground.authority
    gateway_calls = [Caller(f"step-{step}", key=f"job-{step}", timeout=20, pauses=(1,) * 30) for step in range(STEPS + 1)]
    if not authority:
        for caller in gateway_calls:
            stand.call(caller)
        return
    kills, messages = 0, 0
    for step, caller in enumerate(gateway_calls):
        at = f"kill before tallyd.send {max(1, messages * step // STEPS)}" if step else "kill before nothing 1"
        hold = stand.folder / f"hold-{step}"
        hold.mkdir()
        if authority.process.poll() is None:
            authority.kill()
        authority.start(stand.ground.held(hold))
        agents = stand.agents(caller, held=True).ready()
        stand.hold_order(hold, at)
        agents.go()
        wait_for("killed or done", lambda: authority.process.poll() is not None or agents.ended(), 60)  # pylint: disable=cell-var-from-loop
        if not step:
            messages = len((hold / "trace").read_text(encoding="ascii").splitlines())
            stand.note(messages_of_a_call=messages)
        elif authority.process.poll() is not None:
            kills += 1
            authority.start()
        agents.wait()
    # The last order may still wait for its message.
    if authority.process.poll() is None:
        authority.kill()
    authority.start()
    stand.note(kills=kills)


@scenario("L09", "PostgreSQL killed and restarted, twice, under load",
          "a COMMIT that was cut is looked up, never guessed; the calls wait and go on",
          all_done(LOAD), private=True)
def database_killed(stand):
    agents = load(stand, 8)
    for _ in range(2):
        stand.seconds(2)
        if stand.ours:
            stand.ground.authority.end_database(9)
            wait_for("the database is back", stand.ground.authority.database_pid)
    for one in agents:
        one.wait()


@scenario("L17", "two replicas, one cut off from the database",
          "the one that cannot ask grants nothing, and its gateway sends nothing; what it had sent is committed when it can ask again. The "
          "same act through the other replica is done once",
          all_done(4) | {"A": {"effects": 5, "duplicates": 1, "confirmed": 5}, "B": {"effects": 4, "confirmed": 5},
                         "C": {"effects": 4, "confirmed": 5, "holds": 0}, "D": {"effects": 4, "dispatches": 4, "confirmed": 5, "holds": 0}},
          private=True)
def replica_cut_off(stand):
    stand.behaves(dora=[{"after": 1.5}])
    anna, ben, dora = (Caller(name, key=f"job-{name}", timeout=20, pauses=(1,) * 30) for name in ("anna", "ben", "dora"))
    cleo = [Caller("cleo", name=f"cleo-{i}", key="job-cleo", timeout=20, pauses=(1,) * 30) for i in range(2)]
    if not stand.ours:
        stand.call(anna, ben, dora)
        return stand.call(*cleo)

    folder = stand.folder / "database"
    folder.mkdir()
    wire = Wire(str(folder / ".s.PGSQL.5432"), str(stand.ground.authority.database_folder / ".s.PGSQL.5432"))
    second = stand.ground.add_tallyd("e", settings=f"database_url = \"host={folder} user=tally dbname=tally\"",
                                     like=stand.ground.authority).start()
    whole, cut_off = stand.gateway(), stand.gateway("other", server=second.socket)
    stand.call(anna, port=whole.port)
    stand.call(ben, port=cut_off.port)
    waits = [stand.agents(dora, port=cut_off.port)]
    stand.wait_dispatched("dora")
    wire.up.clear()
    wire.down.clear()
    waits.append(stand.agents(cleo[0], port=cut_off.port))
    stand.seconds(1)
    stand.call(cleo[1], port=whole.port)
    stand.seconds(4)
    wire.lose()
    for one in waits:
        one.wait()
    return None


@scenario("L18", "the database's disk is full for a while",
          "nothing can be recorded, so nothing is granted and nothing sent; when there is room it goes on",
          all_done(LOAD, database_was_full=True, done_while_full=[0, 3]), private=True)
def disk_full(stand):
    """By the limit on the size of files, which PostgreSQL takes for a full disk."""
    agents = load(stand, 8)
    stand.seconds(2)
    if stand.ours:
        authority = stand.ground.authority
        # tallyd starts the database again, and what it starts has its limits.
        files_at_most(authority, 256 << 10)
        done_before = len(stand.effects_all())
        stand.seconds(5)
        stand.note(done_while_full=len(stand.effects_all()) - done_before)
        files_at_most(authority, resource.RLIM_INFINITY)
        said = (authority.folder / "postgres.log").read_text(encoding="utf-8", errors="replace")
        stand.note(database_was_full="File too large" in said)
    for one in agents:
        one.wait()


def files_at_most(authority, size):
    """As the user whose process it is: another's limits may be set by a privileged process alone."""
    limit = "unlimited" if size == resource.RLIM_INFINITY else str(size)
    for pid in authority.processes():
        try:
            owner = os.stat(f"/proc/{pid}").st_uid
        except FileNotFoundError:
            continue
        command = ["prlimit", "--pid", str(pid), f"--fsize={limit}:"]
        if owner != os.geteuid():
            command = ["runuser", "-u", pwd.getpwuid(owner).pw_name, "--", *command]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode and os.path.exists(f"/proc/{pid}"):
            raise AssertionError(done.stderr)


@scenario("L19", "a replica's wall clock wrong by a day, either way",
          "all times are the database's: a permit of 24 hours is neither expired nor not yet valid, a lease ends when it ends, receipts "
          "carry the right time",
          {"A": {"effects": 3, "confirmed": 3}, "B": {"effects": 3, "confirmed": 3},
           "C": {"effects": 3, "dispatches": 3, "confirmed": 2, "uncertain": 1, "holds": 1, "receipts_off_s": [0, 3600]},
           "D": {"effects": 3, "dispatches": 3, "confirmed": 2, "uncertain": 1, "holds": 1, "receipts_off_s": [0, 3600]},
           "E": {"effects": 3, "dispatches": 3, "confirmed": 3, "receipts_off_s": [0, 3600]}},
          private=True)
def wrong_clock(stand):
    callers = {name: Caller(name, key=f"job-{name}", timeout=20, pauses=(1,) * 30) for name in ("ahead", "behind")}
    leased = Caller("leased", key="job-leased", pauses=(1,) * 3)
    if not stand.ours:
        return stand.call(*callers.values(), leased)
    gateways = {}
    for name, skew in (("ahead", DAY), ("behind", -DAY)):
        replica = stand.ground.add_tallyd(name, like=stand.ground.authority, settings=f"database_url = \"host="
                                          f"{stand.ground.authority.database_folder} user=tally dbname=tally\"")
        replica.start(stand.ground.skewed(skew))
        gateways[name] = stand.gateway(name, server=replica.socket)
        stand.call(callers[name], port=gateways[name].port)
    # And a lease that nobody ends: it is over at its time, by both.
    stand.behaves(leased=[{"after": 30}])
    agents = stand.agents(leased, port=gateways["ahead"].port)
    stand.wait_done("leased")
    gateways["ahead"].kill()
    stand.note(before_its_end=stand.state("job-leased"))
    wait_for("the lease is over", lambda: stand.state("job-leased") != "AUTHORIZED", 120)
    agents.wait()
    stand.call(leased, port=gateways["behind"].port)
    listed = stand.run_tally("receipt", "list", "--permit", stand.permit, who="auditor")["receipts"]
    stand.note(receipts_off_s=round(max(abs(time.time() - one["time_us"] / 1e6) for one in listed)))
    return None


@scenario("L22", "the key that opens the signing key: lost while running, unreadable at start",
          "what runs has it in memory and goes on; what starts without it refuses and says why; meanwhile nothing is sent",
          all_done(3, refused_to_start=True, sent_without_authority=0), private=True)
def key_lost(stand):
    anna, ben, cleo = (Caller(name, key=f"job-{name}", timeout=20, pauses=(1,) * 40) for name in ("anna", "ben", "cleo"))
    stand.call(anna)
    if not stand.ours:
        return stand.call(ben, cleo)
    authority = stand.ground.authority
    key = authority.folder / "kek"
    shutil.move(key, stand.folder / "kek")
    stand.call(ben)
    authority.kill()
    authority.launch()
    status = authority.process.wait(60)
    words = authority.log().strip().splitlines()[-1]
    stand.note(refused_to_start=status == 1 and "key-encryption key" in words, said=words[-300:])
    agents = stand.agents(cleo)
    stand.seconds(3)
    stand.note(sent_without_authority=stand.dispatches("cleo"))
    shutil.move(stand.folder / "kek", key)
    authority.start()
    agents.wait()
    return None
