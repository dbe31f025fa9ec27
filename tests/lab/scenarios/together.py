"""Many callers at once, and keys and arguments that do not fit."""
from scenario import scenario
from stand import Caller

MANY = 100


@scenario("L01", "100 identical calls at once, one key",
          "a durable key is enough for this, if all callers have the same",
          {"A": {"effects": MANY, "duplicates": MANY - 1}, "B": {"effects": 1, "confirmed": MANY},
           "C": {"effects": 1, "dispatches": 1, "confirmed": MANY, "holds": 0},
           "D": {"effects": 1, "dispatches": 1, "confirmed": MANY, "holds": 0}})
def identical_at_once(stand):
    at_once(stand, [Caller("anna", name=f"caller-{i}", key="job-1", pauses=(1,) * 12, timeout=30) for i in range(MANY)], 5)


@scenario("L02", "same key, other arguments",
          "a key that stands for two things is a mistake: the second is refused, and is told so",
          {"A": {"effects": 2, "beyond": 1}, "B": {"effects": 1, "confirmed": 2}, "C": {"effects": 1, "confirmed": 2},
           "D": {"effects": 1, "confirmed": 2, "holds": 0}})
def other_arguments(stand):
    stand.permitted = [("anna", 100)]
    stand.call(Caller("anna", key="job-1"))
    stand.call(Caller("anna", amount=200, name="mistake", key="job-1", pauses=(1,)))


@scenario("L10", "twenty calls race for three slots",
          "no key helps here: somebody must count before it is sent",
          {"A": {"effects": 20, "beyond": 17}, "B": {"effects": 20, "beyond": 17}, "C": {"effects": 3, "confirmed": 20},
           "D": {"effects": 3, "dispatches": 3, "confirmed": 20, "holds": 0}},
          grant={"cap": "3"})
def race_for_slots(stand):
    stand.permitted = 3
    at_once(stand, [Caller(f"customer-{i}", key=f"job-{i}", pauses=(1,) * 5, timeout=30) for i in range(20)], 2)


@scenario("L12", "double fire, 2 ms apart, different keys",
          "two keys for one act, both before the first is answered: only who knows the intent can tell",
          {"A": {"effects": 2, "duplicates": 1}, "B": {"effects": 2, "duplicates": 1}, "C": {"effects": 1, "dispatches": 1, "confirmed": 2},
           "D": {"effects": 1, "dispatches": 1, "confirmed": 2, "holds": 0}})
def double_fire(stand):
    stand.behaves(anna=[{"after": 0.5}])
    at_once(stand, [Caller("anna", name=f"fire-{i}", key=f"fire-{i}", delay=i * 0.002, pauses=(1,) * 5) for i in range(2)], 1)


@scenario("L28", "members that differ by case",
          "a permit that judges `amount` before a tool that reads `Amount`: what can be read in two ways is refused",
          {"A": {"effects": 1, "beyond": 1, "misinformed": 1}, "B": {"effects": 1, "beyond": 1, "misinformed": 1},
           "C": {"effects": 0, "dispatches": 0, "confirmed": 1}, "D": {"effects": 0, "dispatches": 0, "confirmed": 1, "holds": 0}})
def differ_by_case(stand):
    stand.permitted = [("anna", 100)]
    stand.call(Caller("anna", key="job-1", more={"Amount": 90000}, pauses=()))


def at_once(stand, callers, processes):
    agents = [stand.agents(*callers[i::processes], held=True) for i in range(processes)]
    for one in agents:
        one.ready()
    for one in agents:
        one.go()
    for one in agents:
        one.wait()
