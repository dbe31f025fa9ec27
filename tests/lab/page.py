"""Results as one HTML page: no script, nothing from elsewhere."""
import html

import table

COLOURS = {"A": "#9a6b4f", "B": "#b79a4a", "C": "#4a7fb7", "D": "#2f5d8a", "E": "#2f8a6a"}
STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #667; --line: #d5d9de; --bad: #b3261e; --good: #1d7a46; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #9aa3ad; --line: #3a4048; --bad: #ff8a80; --good: #7fd6a2; --paper: #16191c; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.05rem; margin: 2.2rem 0 .2rem; }
p { margin: .3rem 0; max-width: 62rem; } .soft { color: var(--soft); } .bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; margin: .5rem 0; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: right; } th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .soft { fill: var(--soft); }
"""


def escape(text):
    return html.escape(str(text))


def bars(rows, unit):
    """Horizontal bars of (label, value, colour), all to one scale."""
    most = max([value for _, value, _ in rows] + [1])
    lines = []
    for i, (label, value, colour) in enumerate(rows):
        y, width = i * 22, 520 * value / most
        lines.append(f'<text x="0" y="{y + 15}">{escape(label)}</text><rect x="60" y="{y + 3}" width="{width:.1f}" height="15" rx="2" fill="{colour}"/>'
                     f'<text x="{66 + width:.1f}" y="{y + 15}">{value} {escape(unit)}</text>')
    return (f'<svg role="img" width="760" height="{22 * len(rows) + 4}" viewBox="0 0 760 {22 * len(rows) + 4}">{"".join(lines)}</svg>')


def total(report, column, *figures):
    return sum(one["columns"][column].get(figure, 0) or 0 for one in report["scenarios"] for figure in figures
               if column in one["columns"] and one["id"].startswith("L"))


def overview(report):
    parts = []
    for heading, figures, unit in (("Effects that nobody wanted: duplicates, and beyond what was permitted", ("duplicates", "beyond"), ""),
                                   ("Callers left with no information, or told what is not so", ("no_information", "misinformed"), "callers"),
                                   ("Callers told that the outcome is not known", ("uncertain",), "callers")):
        parts.append(f"<h2>{escape(heading)}</h2>" + bars([(column, total(report, column, *figures), COLOURS[column])
                                                            for column in report["columns"]], unit))
    return "".join(parts)


def outcome_chart(one):
    """Of each column's callers: who knows, who knows that nobody knows, who is left alone."""
    parts = [("confirmed", "#3d8f5f"), ("uncertain", "#c9a13b"), ("no_information", "#9aa0a6"), ("misinformed", "#b3261e")]
    lines, y = [], 0
    for column, found in one["columns"].items():
        if "error" in found or not found["callers"]:
            continue
        x = 24.0
        lines.append(f'<text x="0" y="{y + 13}">{column}</text>')
        for figure, colour in parts:
            width = 300 * found[figure] / found["callers"]
            if width:
                lines.append(f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="13" fill="{colour}"><title>{found[figure]} '
                             f'{figure.replace("_", " ")}</title></rect>')
            x += width
        wanted = found["effects"] - found["duplicates"] - found["beyond"]
        scale = 300 / max(other.get("effects", 0) or 1 for other in one["columns"].values())
        for count, colour, name in ((wanted, "#3d8f5f", "meant"), (found["effects"] - wanted, "#b3261e", "not wanted")):
            start = 360 + (0 if name == "meant" else wanted * scale)
            if count > 0:
                lines.append(f'<rect x="{start:.1f}" y="{y + 2}" width="{count * scale:.1f}" height="13" fill="{colour}"><title>{count} effects '
                             f'{name}</title></rect>')
        y += 19
    return (f'<svg role="img" width="680" height="{y + 18}" viewBox="0 0 680 {y + 18}">{"".join(lines)}<text class="soft" x="24" y="{y + 14}">callers'
            f'</text><text class="soft" x="360" y="{y + 14}">effects (red: not wanted)</text></svg>')


def section(one):
    rows = ["<tr><th></th>" + "".join(f"<th>{escape(name)}</th>" for _, name in table.FIGURES) + "</tr>"]
    for column, found in one["columns"].items():
        if "error" in found:
            rows.append(f'<tr><td>{column}</td><td colspan="{len(table.FIGURES)}" class="bad">{escape(found["error"])}</td></tr>')
        else:
            rows.append(f"<tr><td>{column}</td>" + "".join(
                f'<td{bad(figure, found)}>{escape(table.cell(figure, found))}</td>' for figure, _ in table.FIGURES) + "</tr>")
    said = "".join(f"<p class=\"soft\">{escape(words)}</p>" for words in table.further(one) + table.verdict_on_keys(one["columns"]))
    wrong = "".join(f'<p class="bad">Not as expected, {column}: {escape(words)}</p>'
                    for column, found in one["not_as_expected"].items() for words in found)
    held = '<span class="good">holds</span>' if one["holds"] else '<span class="bad">does not hold</span>'
    return (f'<h2 id="{one["id"]}">{one["id"]}  {escape(one["title"])}: {held}</h2><p class="soft">{escape(one["why"])}</p>'
            f'{outcome_chart(one)}<div class="wide"><table>{"".join(rows)}</table></div>{said}{wrong}')


def bad(figure, found):
    return ' class="bad"' if figure in ("duplicates", "beyond", "no_information", "misinformed") and found.get(figure) else ""


def render(report):
    held = sum(one["holds"] for one in report["scenarios"])
    columns = "".join(f"<li><b>{column}</b> {escape(what)}</li>" for column, what in report["columns"].items())
    missing = "" if "E" in report["columns"] else "<p>E, D with the reconciler, was not measured in this run.</p>"
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>Tallystick: the failure lab</title><style>{STYLE}</style></head><body><h1>The failure lab</h1>"
            f'<p>{held} of {len(report["scenarios"])} scenarios hold. Seed {report["seed"]}, pace {report["pace"]}. Effects are counted in the provider\'s own '
            f"file, dispatches on the wire; nothing that the product says of itself counts for them.</p><ul>{columns}</ul>{missing}"
            f'{overview(report)}{"".join(section(one) for one in report["scenarios"])}</body></html>\n')
