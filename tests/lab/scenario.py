"""What a scenario is: a name, what must hold in each column with the reason, and the steps."""
import dataclasses

# Of every column behind the gateway, in every scenario.
ALWAYS = {"duplicates": 0, "beyond": 0, "no_information": 0, "misinformed": 0, "receipts_verify": True}
# Of every column with the reconciler, where the provider can tell.
ALWAYS_RECONCILED = {"uncertain": 0, "holds": 0}
ALL = []


@dataclasses.dataclass
class Scenario:
    id: str
    title: str
    why: str  # the expectation's reason, in a line
    expected: dict  # column -> figure -> value, or [least, most]
    steps: callable = None
    grant: dict = None  # terms of the permit's grant that differ
    tool_timeout: float = 2  # the gateway's, in seconds at pace 1
    key_place: str = '{ header = "X-Payment-Key" }'  # of column C
    private: bool = False  # has a tallyd of its own in each column, which it breaks
    authority: str = ""  # settings of that
    provider_can_tell: bool = True

    def wanted(self, column):
        wanted = self.expected.get(column) or self.expected.get("D" if column == "E" else "", {})
        if column in "CDE":
            wanted = {**ALWAYS, **wanted}
        if column == "E" and self.provider_can_tell:
            wanted.update(ALWAYS_RECONCILED)
        return wanted


def scenario(id, title, why, expected, **more):  # pylint: disable=redefined-builtin
    def add(steps):
        ALL.append(Scenario(id, title, why, expected, steps, **more))
        return steps
    return add


def broken(wanted, result):
    """What is not as expected, in words."""
    found = []
    for figure, value in wanted.items():
        got = result.get(figure)
        good = (got is not None and value[0] <= got <= value[1]) if isinstance(value, list) else got == value
        if not good:
            found.append(f"{figure} is {got} and should be {f'{value[0]} to {value[1]}' if isinstance(value, list) else value}")
    return found
