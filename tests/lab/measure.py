"""What one column of a scenario came to. Effects are the provider's file, dispatches the proxy's; what callers know is what
they were told, held against those."""
import json
import pathlib

SUCCESS = ("done", "replayed", "already_done/")
SILENCE = ("timeout", "broken", "http ")
DECIDED = ("denied/", "cap_exceeded/", "invalid/")


def lines(path):
    path = pathlib.Path(path)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


class Story:
    """What one caller was told, and what it can conclude: happened, not happened, uncertain (it was said so), nothing."""

    def __init__(self):
        self.act, self.state, self.asked, self.known = None, None, None, None
        self.told, self.open, self.keys, self.key = [], False, set(), None

    def event(self, line):
        self.act = self.act or (line["customer"], line["amount"])
        if line["event"] == "ask":
            if self.open:
                self.hear("silence", line["t"])  # it died before it was answered
            self.asked, self.open = self.asked or line["t"], True
            self.key = line["key"]
            self.keys.add(self.key)
        else:
            self.open = False
            self.hear(line["what"], line["t"])

    def hear(self, what, t):
        self.told.append(what.split(":")[0])
        if self.state == "happened":
            return
        before = self.state
        if what.startswith(SUCCESS):
            self.state = "happened"
        elif what.startswith("delivery_uncertain/"):
            self.state = "uncertain"
        elif what == "silence" or what.startswith(SILENCE):
            self.state = "nothing"
        elif self.state is None or (what.startswith(DECIDED) and len(self.keys) == 1 and None not in self.keys):
            # An error or a refusal is an answer about this request, and no news about one before it; but a decision about
            # a key is one about all that was asked under it.
            self.state = "not happened"
        if self.state != before:
            self.known = t

    def end(self):
        if self.open:
            self.hear("silence", None)
        return self


def stories(log):
    found = {}
    for line in log:
        if line["event"] != "ready":
            found.setdefault(line["caller"], Story()).event(line)
    return {name: story.end() for name, story in found.items()}


def measure(folder, meant, permitted):
    """`meant`: how often each act (customer, amount) was meant to be done, once where it does not say. `permitted`: acts, or a
    number of them, that the operator would have let happen; None: all."""
    effects = [(line["customer"], line["amount"]) for line in lines(folder / "effects")]
    wire = lines(folder / "wire")
    log = lines(folder / "agents")
    times = {act: effects.count(act) for act in effects}
    told = stories(log)
    result = {"requests": sum(line["event"] == "ask" for line in log), "dispatches": len(wire), "effects": len(effects),
              "duplicates": sum(max(0, count - meant.get(act, 1)) for act, count in times.items()), "beyond": 0,
              "callers": len(told), "confirmed": 0, "uncertain": 0, "no_information": 0, "misinformed": 0}
    if isinstance(permitted, int):
        result["beyond"] = max(0, len(times) - permitted)
    elif permitted is not None:
        result["beyond"] = sum(act not in permitted for act in effects)
    waits = []
    for story in told.values():
        happened = times.get(story.act, 0) > 0
        if story.state == "uncertain":
            result["uncertain"] += 1
        elif story.state == "nothing" or story.state is None:
            result["no_information"] += 1
        elif (story.state == "happened") == happened:
            result["confirmed"] += 1
            if story.asked is not None:
                waits.append(story.known - story.asked)
        else:
            result["misinformed"] += 1
    result["known_s"] = round(max(waits), 1) if waits else None
    result["told"] = {name: story.told for name, story in told.items()} if len(told) <= 6 else count_told(told)
    return result


def count_told(told):
    counts = {}
    for story in told.values():
        for what in story.told:
            counts[what] = counts.get(what, 0) + 1
    return counts
