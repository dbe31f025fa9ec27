#!/usr/bin/env python3
"""The failure lab: Tallystick broken in every way that reality breaks it, beside agents without it, and judged by what the
provider's own file and the wire say. See docs/lab.md.

TALLY_BIN says where the programs lie, TALLY_HOLD where the library is that kills at a system call.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from stand import COLUMNS, OURS, Ground, Stand
from scenario import broken
from scenarios import ALL
import page
import table


def told(error, arguments):
    if arguments.verbose:
        traceback.print_exception(error)
    where = [f"{pathlib.Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    return {"error": f"{type(error).__name__}: {error} ({' '.join(where[-4:])})"}


def measured(scenario, column, ground, arguments):
    stand = Stand(column, scenario, ground, arguments.pace, arguments.seed)
    try:
        scenario.steps(stand)
        return stand.result()
    except Exception as error:  # pylint: disable=broad-except
        return told(error, arguments)
    finally:
        stand.close()


def run_column(scenario, column, ground, arguments):
    started = time.monotonic()
    try:
        if scenario.private and column in OURS:
            with Ground(f"lab-{scenario.id}{column}", settings=scenario.authority) as own:
                result = measured(scenario, column, own, arguments)
                own.failures += "error" in result
                ground.failures += own.failures
        else:
            result = measured(scenario, column, ground, arguments)
    except Exception as error:  # pylint: disable=broad-except  # whatever it is, this column did not hold
        result = told(error, arguments)
    result["took_s"] = round(time.monotonic() - started, 1)
    return result


def run(scenario, ground, arguments):
    with concurrent.futures.ThreadPoolExecutor(len(arguments.columns)) as pool:
        columns = dict(zip(arguments.columns, pool.map(lambda c: run_column(scenario, c, ground, arguments), arguments.columns)))
    expected = {column: scenario.wanted(column) for column in arguments.columns}
    faults = {column: [result["error"]] if "error" in result else broken(expected[column], result)
              for column, result in columns.items()}
    return {"id": scenario.id, "title": scenario.title, "why": scenario.why, "columns": columns, "expected": expected,
            "not_as_expected": {column: found for column, found in faults.items() if found},
            "holds": not any(faults.values())}


def parse():
    parser = argparse.ArgumentParser(prog="./dev lab", description="Breaks Tallystick, and counts what the provider's own file says.")
    parser.add_argument("--only", action="append", metavar="ID", help="only this scenario; may be repeated")
    parser.add_argument("--columns", default="ABCDE", help="A to E (default all; E needs tally-reconciler among the programs)")
    parser.add_argument("--seed", type=int, default=1, help="what is left to chance goes by it (default 1)")
    parser.add_argument("--pace", type=float, default=1, help="all waits, times this: for slow machines and sanitizers (default 1)")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    parser.add_argument("--html", metavar="FILE", help="write a page with charts there")
    parser.add_argument("--list", action="store_true", help="name the scenarios, and run none")
    parser.add_argument("--verbose", action="store_true", help="say more about what went wrong")
    arguments = parser.parse_args()
    reconciler = os.access(pathlib.Path(os.environ.get("TALLY_BIN", "")) / "tally-reconciler", os.X_OK)
    arguments.columns = [column for column in COLUMNS if column in arguments.columns and (column != "E" or reconciler)]
    chosen = [one for one in ALL if not arguments.only or one.id in arguments.only]
    unknown = set(arguments.only or ()) - {one.id for one in ALL}
    if unknown:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    return arguments, chosen


def main():
    arguments, chosen = parse()
    if arguments.list:
        for one in chosen:
            print(f"{one.id}  {one.title}")
        return 0
    if not os.path.exists(os.environ.get("TALLY_HOLD", "")):
        sys.exit("TALLY_HOLD does not name the library that kills at a system call")
    results, started = [], time.monotonic()
    print(table.head(arguments), flush=True)
    with Ground("lab") as ground:
        for one in chosen:
            results.append(run(one, ground, arguments))
            print(table.block(results[-1]), flush=True)
            ground.failures += not results[-1]["holds"]
        failures = ground.failures
    print(table.end(results, time.monotonic() - started), flush=True)
    report = {"seed": arguments.seed, "pace": arguments.pace, "columns": {column: COLUMNS[column] for column in arguments.columns}, "scenarios": results}
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if arguments.html:
        pathlib.Path(arguments.html).write_text(page.render(report), encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
