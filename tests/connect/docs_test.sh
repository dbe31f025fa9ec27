#!/usr/bin/env bash
# Runs the shell blocks of docs/http.md, one after the other, against a tallyd of its own; every command must succeed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/tests/demo/stage.sh"
set_stage
mint support-http 5 >/dev/null
stop "$tallyd_pid" 30
sed -i 's|^#http = ""|http = "127.0.0.1:0"|' "$data/tallyd.toml"
: >"$work/tallyd.log"
start_tallyd

HTTP=$(sed -n 's|^metrics on \(http://[^/]*\)/metrics$|\1|p' "$work/tallyd.log")
export HTTP CREDENTIAL PERMIT_TOKEN
CREDENTIAL=$(cat "$work/gateway.credential")
PERMIT_TOKEN=$(cat "$work/support-http.token")
{ echo 'set -euo pipefail'; sed -n '/^```sh$/,/^```$/{/^```/d;p}' "$root/docs/http.md"; } >"$work/docs.sh"
expect "the number of requests in docs/http.md" "$(grep -c 'post Calls' "$work/docs.sh")" 5
mkdir "$work/elsewhere"
(cd "$work/elsewhere" && timeout 60 bash -x "$work/docs.sh") >"$work/docs.log" 2>&1
expect "the shell blocks of docs/http.md" "$?" 0
[ "$failures" = 0 ] || tail -30 "$work/docs.log"
exit "$failures"
