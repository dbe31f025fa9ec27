"""Processes that are killed or stopped in the middle of a call. Where no gateway stands between, it is the agent's."""
import signal

from scenario import scenario
from stand import Caller, Wire, state_of, wait_for

DONE = {"effects": 1, "confirmed": 1}
TWICE = {"effects": 2, "duplicates": 1}
PATIENT = (1,) * 20  # a loop that outlasts a restart


@scenario("L06", "gateway killed before the send",
          "killed before it had the grant, and with `sending` on disk: it could have been sent, so it is parked and not sent again. "
          "An agent alone just begins anew, and is right",
          {"A": {"effects": 2, "confirmed": 2}, "B": {"effects": 2, "confirmed": 2},
           "C": {"effects": 0, "dispatches": 0, "uncertain": 2, "holds": 2}, "D": {"effects": 0, "dispatches": 0, "uncertain": 2, "holds": 2},
           "E": {"effects": 2, "dispatches": 2, "confirmed": 2}})
def killed_before(stand):
    anna, ben = (Caller(name, key=f"job-{name}", pauses=PATIENT[:14]) for name in ("anna", "ben"))
    if not stand.ours:
        for caller in (anna, ben):
            stand.agents(caller, held=True).ready().kill()
        return stand.call(anna, ben)

    wire = Wire(str(stand.folder / "authority"), stand.ground.socket)
    gateway = stand.gateway(server=wire.path)
    first = stand.agents(anna, held=True).ready()
    wire.down.clear()
    first.go()
    wait_for("the grant is on its way", lambda: stand.state("job-anna") == "AUTHORIZED")
    gateway.kill()
    wire.lose()

    hold = stand.folder / "hold"
    hold.mkdir()
    gateway.start(hold)
    second = stand.agents(ben, held=True).ready()
    stand.hold_order(hold, "kill before upstream.connect 1")
    second.go()
    gateway.process.wait(60)
    stand.note(killed_where_told=(hold / "obeyed").exists())
    gateway.start()
    first.wait()
    return second.wait()


@scenario("L07", "gateway killed after the send",
          "its journal says `sending`: the next run parks the call, for it may have been carried out, as it was",
          {"A": TWICE, "B": DONE, "C": {"effects": 1, "dispatches": 1, "uncertain": 1, "holds": 1},
           "D": {"effects": 1, "dispatches": 1, "uncertain": 1, "holds": 1}, "E": {"effects": 1, "dispatches": 1, "confirmed": 1}})
def killed_after(stand):
    stand.behaves(anna=[{"after": 1.5}])
    caller = Caller("anna", key="job-1", pauses=PATIENT[:6])
    agents = stand.agents(caller)
    stand.wait_done("anna")
    if stand.ours:
        gateway = stand.gateways[0]
        gateway.kill()
        gateway.start()
    else:
        agents.kill()
        agents = stand.agents(caller)
    agents.wait()


@scenario("L23", "stopped between grant and send, woken after the verdict",
          "a suspended machine wakes with a grant in its hand; meanwhile it was judged \"not happened\" and done by another. The send "
          "window is over, and it sends nothing",
          {"A": {**TWICE, "confirmed": 2}, "B": {"effects": 1, "confirmed": 2},
           "C": {"effects": 1, "dispatches": 1, "confirmed": 2, "holds": 0, "attempts": 2},
           "D": {"effects": 1, "dispatches": 1, "confirmed": 2, "holds": 0, "attempts": 2}})
def stopped_and_woken(stand):
    first, second = (Caller("anna", name=name, key="job-1", timeout=90, pauses=(1,) * 6) for name in ("first", "second"))
    if not stand.ours:
        stopped = stand.agents(first, held=True).ready()
        stopped.signal(signal.SIGSTOP)
        stand.call(second)
        stopped.go().signal(signal.SIGCONT)
        return stopped.wait()

    wire = Wire(str(stand.folder / "authority"), stand.ground.socket)
    gateway = stand.gateway(server=wire.path)
    stopped = stand.agents(first, held=True).ready()
    wire.down.clear()
    stopped.go()
    wait_for("granted", lambda: stand.state("job-1") == "AUTHORIZED")
    gateway.signal(signal.SIGSTOP)
    wait_for("stopped", lambda: state_of(gateway.process.pid) == "T")
    wire.down.set()
    stand.judge("job-1", "not-happened")
    stand.call(second, port=stand.gateway("other").port)
    gateway.signal(signal.SIGCONT)
    stopped.wait()
    return stand.note(attempts=len(stand.calls()["job-1"]["attempts"]))


@scenario("L26", "a success reported after \"not happened\" was resolved and attempt 2 granted",
          "a wrong verdict: the truth is recorded as a contradiction, a person is called, and attempt 2, not yet sent, is never sent. "
          "(Had it been sent, the verdict would have made a duplicate, which nobody could take back.)",
          {"A": TWICE, "B": DONE, "C": {"effects": 1, "confirmed": 2, "contradicted": True, "holds": 0},
           "D": {"effects": 1, "dispatches": 1, "confirmed": 2, "contradicted": True, "holds": 0}},
          grant={"lease": '"90s"'})
def success_after_verdict(stand):
    # In E the reconciler is misled by a search that lags for longer than it was told.
    stand.behaves(look_up_lag=600, anna=[{"until": "answer"}])
    first, second = (Caller("anna", name=name, key="job-1", timeout=timeout, pauses=pauses)
                     for name, timeout, pauses in (("first", 5, ()), ("second", 90, (2,) * 10)))
    if not stand.ours:
        stand.call(first)
        waits = stand.agents(second)
        stand.wait_dispatched("anna", 2)
        (stand.folder / "answer").touch()
        return waits.wait()

    wire = Wire(str(stand.folder / "authority"), stand.ground.socket)
    gateway, other = stand.gateway(), stand.gateway("other", server=wire.path, lease_margin="60s")
    waits = stand.agents(second, port=other.port, held=True).ready()
    stand.call(first, port=gateway.port)
    # C is still sending again when its agent is answered; the verdict waits for it to be parked.
    stand.judge("job-1", "not-happened")
    wire.down.clear()
    waits.go()
    wait_for("attempt 2 is granted", lambda: stand.state("job-1") == "AUTHORIZED")
    other.signal(signal.SIGSTOP)
    wait_for("stopped", lambda: state_of(other.process.pid) == "T")
    wire.down.set()
    (stand.folder / "answer").touch()
    stand.wait_contradicted("job-1")
    stand.note(contradicted=True)
    stand.seconds(4)  # the send window is over, the lease is not
    other.signal(signal.SIGCONT)
    waits.wait()
    return stand.come_back()
