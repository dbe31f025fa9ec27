"""Results as text."""
from stand import COLUMNS

FIGURES = [("requests", "requests"), ("dispatches", "dispatches"), ("effects", "effects"), ("duplicates", "duplicates"),
           ("beyond", "beyond"), ("confirmed", "confirmed"), ("uncertain", "uncertain"), ("no_information", "no info"),
           ("misinformed", "misled"), ("holds", "holds"), ("receipts", "receipts"), ("known_s", "known after")]


def head(arguments):
    said = [f"{column}  {COLUMNS[column]}" for column in arguments.columns]
    if "E" not in arguments.columns:
        said.append("E  (D with the reconciler) is not measured in this run: tally-reconciler is not among the programs, or E was not asked for")
    return "\n".join([*said, "", "dispatches: counted on the wire; effects: the provider's own file; beyond: effects that the operator would not",
                      "have let happen; misled: callers who were told what is not so; known after: until the last caller knew, seconds", ""])


def cell(figure, result):
    value = result.get(figure)
    if value is None:
        return "-"
    return f"{value} s" if figure == "known_s" else str(value)


def harm(result):
    return result["duplicates"] + result["beyond"], result["no_information"] + result["misinformed"]


def beside(b, ours):
    """How a tool with keys alone compares: better, as well, or worse."""
    if "error" in b or "error" in ours:
        return None
    (b_done, b_told), (our_done, our_told) = harm(b), harm(ours)
    if (b_done > our_done or b_told > our_told or b["confirmed"] < ours["confirmed"]
            or b.get("noticed", 0) < ours.get("noticed", 0)):
        return "worse"
    return "better" if b["confirmed"] > ours["confirmed"] else "as well"


def verdict_on_keys(columns):
    """In words, where B does no worse than a column of ours."""
    if "B" not in columns:
        return []
    said = []
    for column in "CDE":
        if column in columns:
            how = beside(columns["B"], columns[column])
            if how == "as well":
                said.append(f"B does as well as {column}")
            elif how == "better":
                said.append(f"B does better than {column}: it knows the outcome of {columns['B']['confirmed']} of "
                            f"{columns['B']['callers']} callers, {column} of {columns[column]['confirmed']}")
    return said


def further(result):
    """Figures that only this scenario has: of each column, what is expected of it."""
    plain = {figure for figure, _ in FIGURES} | {"receipts_verify"}
    said = []
    for column, found in result["columns"].items():
        figures = [f"{figure.replace('_', ' ')} {found.get(figure)}" for figure in result["expected"][column] if figure not in plain]
        if figures and "error" not in found:
            said.append(f"{column}: {', '.join(figures)}")
    return said


def block(result):
    lines = [f"{result['id']}  {result['title']}: {'holds' if result['holds'] else 'DOES NOT HOLD'}",
             f"     {result['why']}",
             "       " + "".join(f"{name:>12}" for _, name in FIGURES)]
    for column, found in result["columns"].items():
        if "error" in found:
            lines.append(f"    {column}  {found['error'][:1500]}")
        else:
            lines.append(f"    {column}  " + "".join(f"{cell(figure, found):>12}" for figure, _ in FIGURES))
    lines += [f"     {words}" for words in further(result)]
    lines += [f"     {words}" for words in verdict_on_keys(result["columns"])]
    for column, found in result["not_as_expected"].items():
        lines += [f"     NOT AS EXPECTED, {column}: {words[:1500]}" for words in found]
        if "told" in result["columns"][column]:
            lines.append(f"     {column} was told: {result['columns'][column]['told']}")
    return "\n".join(lines) + "\n"


def end(results, seconds):
    held = sum(one["holds"] for one in results)
    return f"{held} of {len(results)} scenarios hold. {int(seconds)} s"
