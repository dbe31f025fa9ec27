"""All of them, in the order of their numbers."""
from scenario import ALL
from scenarios import answers, authority, crashes, limits, together, verdicts  # pylint: disable=unused-import

ALL.sort(key=lambda one: one.id)
