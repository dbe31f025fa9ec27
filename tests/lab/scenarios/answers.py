"""Answers that are lost, late or broken, and what agents make of that."""
from scenario import scenario
from stand import Caller

LOST = {"answer": "hang"}
DONE = {"effects": 1, "confirmed": 1}
PARKED = {"effects": 1, "dispatches": 1, "uncertain": 1, "holds": 1}
CLOSED = {"effects": 1, "dispatches": 1, "confirmed": 1}  # by the reconciler
TWICE = {"effects": 2, "duplicates": 1}


@scenario("L03", "executed, answer lost, same key again",
          "the tool cannot know a repeat without a key; with one, the key suffices; without, the call is parked and not sent again",
          {"A": TWICE, "B": DONE, "C": {**DONE, "holds": 0}, "D": PARKED, "E": CLOSED})
def answer_lost_same_key(stand):
    stand.faults(anna=[LOST])
    stand.call(Caller("anna", key="job-1", pauses=(1, 1, 1)))


@scenario("L04", "executed, answer lost, a new key",
          "a fresh key defeats the tool's de-duplication; the intent rule looks at what is to be done, whatever the key",
          {"A": TWICE, "B": TWICE, "C": {**DONE, "holds": 0}, "D": PARKED, "E": CLOSED})
def answer_lost_new_key(stand):
    stand.faults(anna=[LOST])
    stand.call(Caller("anna", key="job-1", again="fresh", pauses=(1, 1, 1)))


@scenario("L05", "never arrived",
          "nobody can tell it from a lost answer: without a key to send again under, D parks what did not happen; a blind retry "
          "happens to be right here",
          {"A": DONE, "B": DONE, "C": DONE, "D": {"effects": 0, "dispatches": 1, "uncertain": 1, "holds": 1},
           "E": {"effects": 1, "dispatches": 2, "confirmed": 1}})
def never_arrived(stand):
    stand.faults(anna=[{"request": "swallow", "answer": "hang"}])
    stand.call(Caller("anna", key="job-1", pauses=(1, 1, 1)))


@scenario("L13", "lands late, after \"not found\"",
          "a look-up that finds nothing proves nothing yet: D waits with the verdict until it has landed (a person, here)",
          {"A": TWICE, "B": DONE, "C": DONE, "D": {**DONE, "dispatches": 1, "holds": 0}})
def lands_late(stand):
    stand.faults(anna=[{"request": {"late": 4}, "answer": "reset"}])
    stand.call(Caller("anna", key="job-1", until="answer", pauses=()))
    stand.note(found_at_first=stand.look_up("anna"))
    if stand.column == "D":
        stand.wait_done("anna")
        stand.judge("job-1", "happened")
    stand.call(Caller("anna", key="job-1"))
    stand.wait_landed("anna")


@scenario("L14", "half an answer, garbage, nothing, 502, 504",
          "each of them may stand before a refund that was made; none is a reason to send again without a key",
          {"A": {"effects": 10, "duplicates": 5}, "B": {"effects": 5, "duplicates": 0, "confirmed": 5},
           "C": {"effects": 5, "confirmed": 5}, "D": {"effects": 5, "dispatches": 5, "uncertain": 5, "holds": 5},
           "E": {"effects": 5, "dispatches": 5, "confirmed": 5}})
def broken_answers(stand):
    broken = {"half": {"cut": 120}, "garbage": "garbage", "nothing": "close", "s502": "502", "s504": "504"}
    stand.faults(**{name: [{"answer": answer}] for name, answer in broken.items()})
    stand.call(*(Caller(name, key=f"job-{name}", pauses=(1, 1, 1)) for name in broken))


@scenario("L20", "the agent hangs up early and comes again with its key",
          "what the agent did not wait for is committed all the same, and the same key gets that answer",
          {"A": TWICE, "B": DONE, "C": {**DONE, "dispatches": 1}, "D": {**DONE, "dispatches": 1, "holds": 0}})
def hangs_up_early(stand):
    stand.behaves(anna=[{"after": 1.4}])
    stand.call(Caller("anna", key="job-1", timeout=0.7, pauses=(2, 2, 2)))


@scenario("L24", "the model puts a fresh key into the arguments; an answer is lost",
          "the schema asks for a unique key and the model obeys, every time; a tool that trusts it refunds twice. The operator's "
          "permit leaves that argument out of the intent; in C the gateway puts a key of its own there",
          {"A": TWICE, "B": TWICE, "C": DONE, "D": PARKED, "E": CLOSED}, key_place='{ argument = "idempotency_key" }')
def key_in_arguments(stand):
    stand.faults(anna=[LOST])
    stand.call(Caller("anna", fresh_argument="idempotency_key", pauses=(1, 1, 1)))


@scenario("L25", "the agent timed out, the success was committed, it asks again with a fresh key",
          "to a tool a fresh key is another refund; within repeat_window the gateway answers it with the first one's result",
          {"A": TWICE, "B": TWICE, "C": {**DONE, "dispatches": 1}, "D": {**DONE, "dispatches": 1, "holds": 0}})
def timed_out_fresh_key(stand):
    stand.behaves(anna=[{"after": 1.4}])
    stand.call(Caller("anna", key="job-1", again="fresh", timeout=0.7, pauses=(2, 2, 2)))


@scenario("L27", "an isError that hides a timeout",
          "its words say that the tool itself lost an answer: no proof that nothing was done. One agent retries errors, one believes them",
          {"A": {"effects": 3, "duplicates": 1, "misinformed": 1}, "B": {"effects": 2, "duplicates": 0, "misinformed": 1},
           "C": {"effects": 2, "confirmed": 2}, "D": {"effects": 2, "dispatches": 2, "uncertain": 2, "holds": 2},
           "E": {"effects": 2, "dispatches": 2, "confirmed": 2}})
def error_hides_timeout(stand):
    words = [{"words": "Error: the request to the bank timed out"}]
    stand.behaves(anna=words, ben=words)
    stand.call(Caller("anna", key="job-1"), Caller("ben", key="job-2", until="answer"))


@scenario("L30", "a tool that answers a minute after our timeout",
          "the agent is told at the timeout that it is not known; the gateway goes on listening, commits what comes, and the same "
          "key gets it",
          {"A": {"effects": 4, "duplicates": 3}, "B": DONE, "C": {**DONE, "holds": 0}, "D": {**DONE, "dispatches": 1, "holds": 0}})
def answers_a_minute_late(stand):
    stand.behaves(anna=[{"after": 62}] * 3)
    stand.call(Caller("anna", key="job-1", pauses=(1, 1, 65)))


@scenario("L21", "slow loris on either side",
          "connections that never finish a request keep nobody else out; an answer that trickles in is late, and committed when it is whole",
          {"A": {"effects": 3, "duplicates": 1}, "B": {"effects": 2, "confirmed": 2}, "C": {"effects": 2, "confirmed": 2, "holds": 0},
           "D": {"effects": 2, "dispatches": 2, "confirmed": 2, "holds": 0}})
def slow_loris(stand):
    stand.faults(anna=[{"answer": {"dribble": 0.08}}])
    with stand.loris(200):
        stand.call(Caller("anna", key="job-1", pauses=(1, 1, 20)), Caller("ben", key="job-2", pauses=(1, 1)))
