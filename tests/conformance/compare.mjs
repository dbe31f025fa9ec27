// Compares the suite's summary with a column of the tables in docs/conformance.md.
// usage: compare.mjs CONFORMANCE_MD COLUMN SUITE_OUTPUT
import { readFileSync } from "node:fs";

const [page, column, output] = process.argv.slice(2);

// scenario → "pass", "fail" or "-" (it ran, and found nothing to check)
function measured(text) {
  const results = new Map();
  const summary = text.slice(text.indexOf("=== SUMMARY"));
  for (const [, mark, name, passed] of summary.matchAll(/^([✓✗]) ([\w-]+): (\d+) passed/gm)) {
    results.set(name, mark === "✗" ? "fail" : passed === "0" ? "-" : "pass");
  }
  return results;
}

function written(text) {
  const results = new Map();
  let at = -1;
  for (const line of text.split("\n")) {
    const cells = line.startsWith("|") ? line.split("|").slice(1, -1).map((cell) => cell.trim().replaceAll("`", "")) : [];
    if (cells[0] === "scenario") at = cells.indexOf(column);
    else if (cells.length === 0) at = -1;
    else if (at > 0 && !cells[0].startsWith("--")) results.set(cells[0], cells[at]);
  }
  return results;
}

const got = measured(readFileSync(output, "utf8"));
const wanted = written(readFileSync(page, "utf8"));
let wrong = 0;
for (const name of new Set([...got.keys(), ...wanted.keys()])) {
  if (got.get(name) === wanted.get(name)) continue;
  console.log(`${column}: ${name}: the table says ${wanted.get(name) ?? "nothing"}, the suite ${got.get(name) ?? "nothing"}`);
  ++wrong;
}
const passing = [...got.values()].filter((result) => result === "pass").length;
console.log(`${column}: ${passing} of ${got.size} scenarios pass; ${wrong} differ from the table`);
process.exit(wrong || got.size === 0 ? 1 : 0);
