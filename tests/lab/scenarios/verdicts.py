"""Permits that are revoked, verdicts that come too late, receipts and records that somebody tampered with."""
import forge
from measure import lines
from scenario import scenario
from stand import Caller

DONE = {"effects": 1, "confirmed": 1}


@scenario("L11", "revocation at each step",
          "what was granted is carried out and committed; what is parked stays parked until a verdict; nothing new is sent. Without us "
          "there is nothing to revoke but the agent's credentials, one by one",
          {"A": {"beyond": 1}, "B": {"effects": 4, "beyond": 1},
           "C": {"effects": 3, "confirmed": 4, "holds": 0}, "D": {"effects": 2, "dispatches": 3, "confirmed": 4, "holds": 0}},
          tool_timeout=8)
def revoked(stand):
    under_way, parked, given_back = Caller("under-way", key="job-1", timeout=20), \
        Caller("parked", key="job-2", timeout=20, until="answer"), Caller("given-back", key="job-3", timeout=20, until="answer")
    stand.permitted = [("under-way", 100), ("parked", 100), ("given-back", 100)]
    stand.behaves(**{"under-way": [{"after": 5}]})
    stand.faults(parked=[{"answer": "reset"}], **{"given-back": [{"request": "swallow", "answer": "reset"}]})
    stand.call(parked, given_back)
    first = stand.agents(under_way)
    stand.wait_done("under-way")
    if stand.ours:
        stand.run_tally("permit", "revoke", stand.permit)
    stand.call(Caller("afterwards", key="job-4", pauses=()))
    first.wait()
    if stand.column == "D":
        stand.judge("job-2", "happened")
        stand.judge("job-3", "not-happened")
        stand.call(parked, given_back)


@scenario("L15", "receipts dropped, exchanged, altered, signed by a retired or an unknown key",
          "an agent's or a tool's log can be changed and nobody sees it; a chain of signed receipts shows each of these, to `tally "
          "receipt verify` and, where a signature is wrong, to openssl alone",
          {"A": {"effects": 3, "forged": 5, "noticed": 0}, "B": {"effects": 3, "forged": 5, "noticed": 0},
           "C": {"effects": 3, "confirmed": 3, "forged": 5, "noticed": 5, "openssl_good": 1, "openssl_noticed": 3},
           "D": {"effects": 3, "confirmed": 3, "forged": 5, "noticed": 5, "openssl_good": 1, "openssl_noticed": 3}})
def forged_receipts(stand):
    for name in ("anna", "ben", "cleo"):
        stand.call(Caller(name, key=f"job-{name}"))
    if stand.ours:
        stand.note(**forge.receipts(stand))
    else:
        # The only record there is: every change of it is another record, as good as the first.
        record = lines(stand.folder / "agents")
        stand.note(forged=5, noticed=sum(not isinstance(line, dict) for line in record))


@scenario("L16", "results pruned, the key used again",
          "the record of a key outlives the answer's bytes: `already_done`, and nothing is sent. A tool's own keys live as long as it "
          "keeps them, here for ever",
          {"A": {"effects": 2, "duplicates": 1}, "B": {"effects": 1, "confirmed": 2}, "C": {"effects": 1, "dispatches": 1, "confirmed": 2},
           "D": {"effects": 1, "dispatches": 1, "confirmed": 2, "holds": 0}})
def pruned(stand):
    stand.call(Caller("anna", key="job-1"))
    if stand.ours:
        stand.ground.authority.sql("UPDATE calls SET result = NULL, result_salt = NULL, arguments = NULL, arguments_salt = NULL "
                                   f"WHERE permit_id = '{stand.permit}'")
    stand.call(Caller("anna", name="later", key="job-1"))


@scenario("L29", "a stale verdict",
          "a verdict on attempt 1 arrives when attempt 2 was sent and parked: it names attempt 1's receipt; another than was given is refused, "
          "and the same moves nothing. Whoever acts on \"not found\" sends a second time",
          {"A": {"effects": 2, "duplicates": 1}, "B": DONE,
           "C": {"effects": 1, "uncertain": 1, "holds": 1, "stale_refused": True, "unmoved": True, "attempts": 2},
           "D": {"effects": 1, "dispatches": 2, "uncertain": 1, "holds": 1, "stale_refused": True, "unmoved": True, "attempts": 2},
           "E": {"effects": 1, "dispatches": 2, "confirmed": 1, "stale_refused": True, "unmoved": True, "attempts": 2}})
def stale_verdict(stand):
    # What is sent again under one key is lost again: all of attempt 1 never arrives, all of attempt 2 is never answered.
    sends = 4 if stand.column == "C" else 1
    stand.faults(anna=[{"request": "swallow", "answer": "reset"}] * sends + [{"answer": "reset"}] * sends)
    caller = Caller("anna", key="job-1", until="answer", pauses=())
    stand.call(caller)
    if not stand.ours:
        seen = stand.look_up("anna")
        stand.call(caller)
        if not seen:
            stand.call(caller)
        return
    verdict = stand.wait_parked("job-1")
    stand.judge("job-1", "not-happened")
    stand.call(caller)
    if stand.column != "E":
        stand.wait_parked("job-1", attempt=2)
    try:
        stand.resolve(verdict, "happened")
        refused = False
    except AssertionError as error:
        refused = "STALE_RESOLUTION" in str(error)
    # The verdict that was given once may be said again; it is attempt 1's, and moves nothing.
    stand.resolve(verdict, "not-happened")
    unmoved = stand.state("job-1") != "NOT_HAPPENED"
    stand.call(Caller("anna", key="job-1"))
    stand.note(stale_refused=refused, unmoved=unmoved, attempts=len(stand.calls()["job-1"]["attempts"]))
