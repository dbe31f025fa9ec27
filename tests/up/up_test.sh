#!/usr/bin/env bash
# ./dev up, which is samples/up/up.sh: its two lines for MCP clients work as printed, over HTTP and as a command; a second
# run keeps the permit; Ctrl-C ends everything.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[ -z "${TALLY_BIN:-}" ] || PATH=$TALLY_BIN:$PATH
# Short, for a socket's path may have 107 bytes; and user postgres, who runs the database for root, passes through.
work=$(mktemp -d /tmp/tally-up.XXXXXX) && chmod 711 "$work" || exit 2
data=$work/d
up_pid='' failures=0

expect() {  # expect WHAT IS WANTED
  if [ "$2" = "$3" ]; then return 0; fi
  failures=$((failures + 1))
  echo "NOT AS PROMISED: $1 is '$2' and should be '$3'"
}
alive() { kill -0 "$1" 2>/dev/null; }
gone() { local i; for ((i = 0; i < $2 * 10; i++)); do alive "$1" || return 0; sleep 0.1; done; return 1; }
cleanup() {
  [ -z "$up_pid" ] || { kill -TERM "$up_pid"; gone "$up_pid" 90 || kill -KILL "$up_pid"; } 2>/dev/null
  if [ $failures = 0 ]; then rm -rf "$work"; else cat "$work"/up*.log "$data"/demo/*.log 2>/dev/null; echo "logs and data are kept in $work"; fi
}
trap cleanup EXIT

# up LOG   until it has printed all
up() {
  bash "$root/samples/up/up.sh" "$data" 0 >"$work/$1" 2>&1 </dev/null &
  up_pid=$!
  local i
  for ((i = 0; i < 900; i++)); do
    grep -q '^export UP=' "$work/$1" && return 0
    alive "$up_pid" || break
    sleep 0.2
  done
  failures=1
  exit 1
}
# As a terminal does it at Ctrl-C, but for a script in the background: bash has it ignore SIGINT, so SIGTERM.
down() {
  local pids; pids="$(pgrep -P "$up_pid" | tr '\n' ' ')"
  kill -TERM "$up_pid"
  gone "$up_pid" 90 || expect "the script after SIGTERM" running ended
  wait "$up_pid"
  expect "its exit status" $? 0
  up_pid=''
  local pid
  for pid in $pids; do expect "process $pid" "$(alive "$pid" && echo running)" ""; done
  expect "the database's pid file" "$(ls "$data/pg/postmaster.pid" 2>/dev/null)" ""
}
# member FILE LINE PATH   of the client configuration in that line's JSON
member() {
  grep '^{"mcpServers"' "$1" | sed -n "${2}p" | python3 -c '
import json, sys
value = json.load(sys.stdin)["mcpServers"]["tallystick"]
for name in sys.argv[1].split("."):
    value = value[int(name)] if isinstance(value, list) else value[name]
print(value)' "$3"
}
ledger() { grep -c "\"customer\": \"$1\"" "$data/demo/ledger.jsonl" 2>/dev/null; }

# refund CUSTOMER   one POST, as 2026-07-28 has it: no session
refund() {
  curl -q -sS --max-time 60 "$url" -H "Authorization: $bearer" -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' \
    -H 'Mcp-Method: tools/call' -H 'Mcp-Name: payments__refund' -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":
      {"name":"payments__refund","arguments":{"customer":"'"$1"'","amount":2500},"_meta":{
       "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
}

up up1.log
url=$(member "$work/up1.log" 1 url) bearer=$(member "$work/up1.log" 1 headers.Authorization)
answer=$(refund anna)
expect "a refund" "$(grep -c 'r_0001' <<<"$answer")" 1
expect "receipts in it" "$(grep -c 'dev.tallystick/call' <<<"$answer")" 1
answer=$(refund anna)
expect "the same again" "$(grep -c '"replayed": *true' <<<"$answer")" 1
expect "refunds for anna" "$(ledger anna)" 1

touch "$data/demo/lose-next"
answer=$(refund ben)
expect "a lost answer" "$(grep -c 'delivery_uncertain: ' <<<"$answer")" 1
answer=$(refund ben)
expect "asked again" "$(grep -c 'INTENT_PENDING' <<<"$answer")" 1
expect "refunds for ben" "$(ledger ben)" 1
eval "$(grep '^export' "$work/up1.log")"
expect "parked calls" "$(TALLY_CREDENTIAL=$UP/operator.credential tally -o json parked list | grep -c '"uncertain_receipt_id"')" 1

# The other line: a command, its permit token in the environment, one JSON message a line.
mapfile -t command < <(member "$work/up1.log" 2 command; for i in 0 1 2; do member "$work/up1.log" 2 args.$i; done)
said=$work/stdio.out; : >"$said"
answered() { local i; for ((i = 0; i < 300; i++)); do grep -q "\"id\":$1" "$said" && return 0; sleep 0.2; done; expect "answer $1 of the command" none one; }
{
  echo '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
  answered 0
  echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  echo '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"payments__refund","arguments":{"customer":"cleo","amount":100}}}'
  answered 1
} | TALLY_PERMIT_TOKEN=$(member "$work/up1.log" 2 env.TALLY_PERMIT_TOKEN) timeout 150 "${command[@]}" >"$said" 2>"$work/up-stdio.log"
expect "the command's exit status" "${PIPESTATUS[1]}" 0
expect "the command's answer" "$(grep -c 'r_0003' "$said")" 1
expect "refunds for cleo" "$(ledger cleo)" 1
down

up up2.log
expect "the permit of the second run" "$(member "$work/up2.log" 1 headers.Authorization)" "$bearer"
url=$(member "$work/up2.log" 1 url)
answer=$(refund anna)
expect "the same in the second run" "$(grep -c '"replayed": *true' <<<"$answer")" 1
down
[ $failures = 0 ] && echo "up: as promised"
[ $failures = 0 ]
