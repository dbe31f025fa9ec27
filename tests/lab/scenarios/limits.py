"""What nobody who stands before the tool can do anything about. Expected, so that it is not forgotten."""
from scenario import scenario
from stand import Caller


@scenario("X01", "a limit: something behind the gateway sends it twice",
          "one dispatch on the wire, two at the provider: only the provider's own key can tell. Where there is none, nobody can",
          {"A": {"effects": 2, "dispatches": 1, "duplicates": 1}, "B": {"effects": 1, "dispatches": 1, "confirmed": 1},
           "C": {"effects": 1, "dispatches": 1, "confirmed": 1}, "D": {"effects": 2, "dispatches": 1, "duplicates": 1}})
def sent_twice_behind(stand):
    stand.faults(anna=[{"request": "twice"}])
    stand.call(Caller("anna", key="job-1"))


@scenario("X02", "a limit: a person's wrong verdict, and attempt 2 was sent",
          "\"not happened\" was not so, and the second attempt is a second effect. Nobody can take it back; it is recorded, charged, and a "
          "person is called. (A has no person: its agent repeats at once)",
          {"A": {"effects": 2, "duplicates": 1}, "B": {"effects": 1, "duplicates": 0},
           "C": {"effects": 1, "contradicted": True, "charged_for": [1, 2]},
           "D": {"effects": 2, "duplicates": 1, "dispatches": 2, "contradicted": True, "charged_for": 2},
           "E": {"effects": 2, "duplicates": 1, "dispatches": 2, "contradicted": True, "charged_for": 2}})
def wrong_verdict(stand):
    # In E the reconciler is misled by a search that lags for longer than it was told.
    stand.behaves(look_up_lag=600, anna=[{"until": "answer"}])
    first, second = Caller("anna", name="first", key="job-1", pauses=()), Caller("anna", name="second", key="job-1", timeout=30)
    stand.call(first)
    if stand.ours:
        stand.judge("job-1", "not-happened")
    if stand.keyed:
        # Its own record makes the second wait for the first.
        (stand.folder / "answer").touch()
    stand.call(second)
    (stand.folder / "answer").touch()
    if stand.ours:
        stand.wait_contradicted("job-1")
        stand.note(contradicted=True, charged_for=stand.charged() // 100)
