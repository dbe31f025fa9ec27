#!/usr/bin/env bash
# The main job, end to end, with real processes on loopback: tallyd with its private PostgreSQL, a payment provider with a
# ledger of its own, and a gateway of one page. Exits non-zero if anything is not as told.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -z "${TALLY_BIN:-}" ] || PATH=$TALLY_BIN:$PATH
for program in tallyd tally curl python3 openssl; do
  command -v $program >/dev/null || { echo "demo: $program is not there; run it by ./dev demo" >&2; exit 2; }
done

# Short, for a socket's path may have 107 bytes; and user postgres, who runs the database for root, must pass through.
work=$(mktemp -d /tmp/tally-demo.XXXXXX) && chmod 711 "$work" || exit 2
data=$work/d
tallyd_pid='' provider_pid='' gateway_pid=''

# ---------------------------------------------------------------- processes

# gone PID SECONDS   waits for the end of a child
gone() {
  local i
  for ((i = 0; i < $2 * 10; i++)); do kill -0 "$1" 2>/dev/null || return 0; sleep 0.1; done
  return 1
}

stop() {  # stop PID SECONDS   asks it to end, and insists after a while
  [ -n "$1" ] && kill -0 "$1" 2>/dev/null || return 0
  { kill -TERM "$1" && gone "$1" "$2" || kill -KILL "$1"; wait "$1"; } 2>/dev/null
}

cleanup() {
  stop "$gateway_pid" 5
  stop "$provider_pid" 5
  stop "$tallyd_pid" 30
  # A tallyd that was killed leaves its database behind. Only one that serves our own folder is stopped.
  local pid
  if pid=$(head -1 "$data/pg/postmaster.pid" 2>/dev/null) && tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "$data/pg"; then
    kill -INT "$pid" 2>/dev/null && gone "$pid" 30
  fi
  if [ "${KEEP:-}" = 1 ] || [ $failures != 0 ]; then echo "logs and data are kept in $work"; else rm -rf "$work"; fi
}

start_tallyd() {
  tallyd serve --data-dir "$data" >>"$work/tallyd.log" 2>&1 &
  tallyd_pid=$!
  local i
  for ((i = 0; i < 60; i++)); do
    TALLY_CREDENTIAL=$data/admin.credential tally --timeout 1s tenant list >/dev/null 2>&1 && return 0
    kill -0 "$tallyd_pid" 2>/dev/null || break
    sleep 0.5
  done
  echo "demo: tallyd does not serve; its log:" >&2
  tail -20 "$work/tallyd.log" >&2
  exit 1
}

# ---------------------------------------------------------------- telling and checking

failures=0
scene() { printf '\n\033[1m(%s) %s\033[0m\n' "$1" "$2"; }
say() { echo "  $*"; }
# expect WHAT IS WANTED
expect() {
  if [ "$2" = "$3" ]; then return 0; fi
  failures=$((failures + 1))
  echo "  NOT AS TOLD: $1 is '$2' and should be '$3'"
}

json() { python3 -c '
import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1].split("."):
    value = value[int(name)] if isinstance(value, list) else value[name]
print(value)' "$1"; }

as() { local who=$1; shift; TALLY_CREDENTIAL=$work/$who.credential "$@"; }

# refund KEY CUSTOMER AMOUNT   through the gateway, as the agent's host would; leaves `verdict` and `told`
refund() {
  told=$(TALLY_CREDENTIAL=$work/gateway.credential TALLY_PERMIT_TOKEN=$(cat "$token") PROVIDER=$provider \
    JOURNAL=$work/journal "$here/gateway.sh" "$@")
  verdict=$?
  echo "$told"
}

# What the provider itself has on record; the only judge of what happened.
ledger() { cat "$work/provider/ledger.jsonl" 2>/dev/null; }
refunds_of() { ledger | grep -c "\"customer\": \"$1\""; }
ledger_says() {  # ledger_says CUSTOMER COUNT
  say "the provider's ledger has $(refunds_of "$1") refund(s) for $1, $(ledger | grep -c .) in all"
  expect "the number of refunds for $1 in the ledger" "$(refunds_of "$1")" "$2"
}
order() { curl -q -sS -X POST "http://127.0.0.1:$control_port/$1" >/dev/null || expect "the provider's control" broken obeying; }
slots() { as operator tally -o json permit show "$permit" | json grants.0.cap.used; }
parked_receipt() { as operator tally -o json parked list | json parked.0.uncertain_receipt_id; }
parked_count() { as operator tally -o json parked list | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["parked"]))'; }

# ---------------------------------------------------------------- the stage

trap cleanup EXIT
trap 'exit 130' INT TERM
mkdir "$work/provider" "$work/journal"
echo "Setting the stage in $work: tallyd with a private PostgreSQL, a provider, one tenant, three credentials, two permits."
tallyd init --data-dir "$data" >"$work/init.log" 2>&1 || { cat "$work/init.log" >&2; exit 1; }
export TALLY_SERVER=unix:$data/tallyd.sock
start_tallyd
python3 "$here/provider.py" "$work/provider" 2>"$work/provider.log" &
provider_pid=$!
for ((i = 0; i < 100; i++)); do [ -s "$work/provider/ports" ] && break; sleep 0.1; done
read -r provider_port control_port <"$work/provider/ports" || { cat "$work/provider.log" >&2; exit 1; }
provider=http://127.0.0.1:$provider_port

export TALLY_CREDENTIAL=$data/admin.credential
tally tenant create acme >/dev/null || exit 1
for role in operator gateway auditor; do
  tally principal create --role $role --tenant acme --out "$work/$role.credential" >/dev/null 2>&1 || exit 1
done
unset TALLY_CREDENTIAL

# mint AGENT CAP   a permit like docs/permit-file.md's
mint() {
  cat >"$work/$1.toml" <<TOML
tenant = "acme"
subject = "$1"
unit = "USD/2"
budget = 50000            # minor units: 500.00 USD
expires_in = "24h"

[[grant]]
tool = "payments__refund"
cap = $2
budget = 50000
per_call = 10000
cost = { pointer = "/amount" }
arguments = { type = "object", required = ["customer", "amount"], additionalProperties = false, properties = { customer = { type = "string" }, amount = { type = "integer", maximum = 10000 } } }
TOML
  as operator tally -o json permit mint -f "$work/$1.toml" --out "$work/$1.token" | json permit_id
}
day=$(mint support-day 3) night=$(mint support-night 5)
permit=$day token=$work/support-day.token
say "support-day may refund 3 times, support-night 5 times; 100.00 USD a time at most, 500.00 USD in all"

# ---------------------------------------------------------------- the scenes

scene 1 "A refund goes through"
refund refund-1 anna 2500
expect "the verdict" $verdict 0
ledger_says anna 1

scene 2 "The same key again: the stored answer, and nothing is sent"
refund refund-1 anna 2500
expect "the verdict" $verdict 14
expect "the disposition" "$(grep -c REPLAY <<<"$told")" 1
ledger_says anna 1

scene 3 "Two more, then the cap of three stops the fourth"
refund refund-2 ben 1000
expect "the verdict" $verdict 0
refund refund-3 cleo 1000
expect "the verdict" $verdict 0
refund refund-4 dora 1000
expect "the verdict" $verdict 12
expect "the code" "$(grep -c CALL_CAP <<<"$told")" 1
ledger_says dora 0

scene 4 "The answer is lost: the call is parked, and nobody may send it again"
permit=$night token=$work/support-night.token
order lose-next
refund refund-5 emil 4000
expect "the verdict" $verdict 20
expect "parked calls" "$(parked_count)" 1
held=$(as operator tally -o json permit show "$permit" | json budget.held)
say "parked; its hold of $held minor units is kept, and its slot"
expect "the hold" "$held" 4000
say "the agent tries again, with the same key:"
refund refund-5 emil 4000
expect "the verdict" $verdict 13
expect "the disposition" "$(grep -c PENDING <<<"$told")" 1
say "and with a new key for the same refund:"
refund refund-5-again emil 4000
expect "the verdict" $verdict 13
expect "the code" "$(grep -c INTENT_PENDING <<<"$told")" 1
ledger_says emil 1

scene 5 "An operator asks the provider, and closes it with the ledger's line as evidence"
ledger | grep '"customer": "emil"' >"$work/evidence.json"
say "evidence: $(cat "$work/evidence.json")"
as operator tally parked resolve "$(parked_receipt)" --verdict happened --source payments-ledger \
  --reference "$(json refund <"$work/evidence.json")" --evidence "@$work/evidence.json" \
  --reason "the provider's ledger has it" --result "@$work/evidence.json" | sed 's/^/  operator: /'
expect "parked calls" "$(parked_count)" 0
refund refund-5 emil 4000
expect "the verdict" $verdict 14
ledger_says emil 1

scene 6 "Another was never sent: its slot comes back, and the same key goes through"
before=$(slots)
order deaf
refund refund-6 fay 3000
expect "the verdict" $verdict 7
say "slots taken: $before before it was asked for, $(slots) after"
expect "the slots taken" "$(slots)" "$before"
ledger_says fay 0
order hear
say "the provider listens again; the same key:"
refund refund-6 fay 3000
expect "the verdict" $verdict 0
ledger_says fay 1

scene 7 "tallyd is killed between Authorize and Commit"
order slow-next
LEASE=5s refund refund-7 gus 1500 >"$work/scene7.log" &
gateway_pid=$!
for ((i = 0; i < 200; i++)); do [ "$(refunds_of gus)" = 0 ] || break; sleep 0.05; done
{ kill -KILL "$tallyd_pid"; wait "$tallyd_pid"; } 2>/dev/null
say "SIGKILL to tallyd while the provider was working"
gone "$gateway_pid" 60
wait "$gateway_pid"
gateway_pid=''
cat "$work/scene7.log"
start_tallyd
say "tallyd serves again, on the same database"
for ((i = 0; i < 60; i++)); do [ "$(parked_count)" = 0 ] || break; sleep 0.5; done
expect "parked calls once the lease is over" "$(parked_count)" 1
say "the lease is over: a dead gateway is an unknown outcome, never a free slot"
refund refund-7 gus 1500
expect "the verdict" $verdict 13
ledger_says gus 1
ledger | grep '"customer": "gus"' >"$work/evidence.json"
as operator tally parked resolve "$(parked_receipt)" --verdict happened --source payments-ledger \
  --reference "$(json refund <"$work/evidence.json")" --evidence "@$work/evidence.json" \
  --reason "the provider's ledger has it" >/dev/null
expect "parked calls after the operator looked" "$(parked_count)" 0

scene 8 "Every receipt verifies, with tally and with openssl alone"
as auditor tally receipt export --permit "$day" --permit "$night" --out "$work/receipts" >/dev/null
expect "the export" $? 0
cd "$work/receipts" || exit 1
tally receipt verify ./*.dsse.json --keys keys.json | sed 's/^/  /'
expect "tally receipt verify" "${PIPESTATUS[0]}" 0
envelope=$(printf '%s\n' ????????????????*.dsse.json | grep -v '^head' | head -1)
payload_type=application/vnd.tallystick.receipt.v1+protobuf
json payload <"$envelope" | base64 -d >payload.bin
json signatures.0.sig <"$envelope" | base64 -d >signature.bin
{ printf 'DSSEv1 %d %s %d ' ${#payload_type} $payload_type "$(wc -c <payload.bin)"; cat payload.bin; } >signed.bin
says=$(openssl pkeyutl -verify -pubin -inkey keys.pem -rawin -in signed.bin -sigfile signature.bin 2>&1)
expect "openssl's verdict" $? 0
say "openssl, of receipt ${envelope:0:16}…: $says"
expect "the receipt's id" "$(sha256sum <signed.bin | cut -d' ' -f1)" "${envelope%.dsse.json}"
python3 - "$envelope" >"$work/flipped.dsse.json" <<'PY'
import base64, json, sys
envelope = json.load(open(sys.argv[1]))
payload = bytearray(base64.b64decode(envelope["payload"]))
payload[len(payload) // 2] ^= 1
envelope["payload"] = base64.b64encode(payload).decode()
print(json.dumps(envelope))
PY
tally receipt verify "$work/flipped.dsse.json" --keys keys.json >"$work/flipped.log"
expect "tally receipt verify of a flipped byte" $? 1
say "one byte of it flipped: $(grep -o 'signature  .*' "$work/flipped.log")"
cd "$work" || exit 1

# ---------------------------------------------------------------- the reckoning

requests=$(grep -c . "$work/provider/requests")
refunds=$(ledger | grep -c .)
distinct=$(ledger | sed 's/.*"customer": "\([^"]*\)".*/\1/' | sort -u | wc -l)
printf '\n  refunds wanted                    7   (one of them stopped by the cap)\n'
printf '  times the gateway was asked      %2d\n' "$(find "$work/journal" -type f | wc -l)"
printf '  requests sent to the provider    %2d\n' "$requests"
printf "  refunds in the provider's ledger %2d\n" "$refunds"
printf '  duplicates                       %2d\n\n' $((refunds - distinct))
expect "the number of requests sent" "$requests" 6
expect "the number of refunds" "$refunds" 6
expect "the number of duplicates" $((refunds - distinct)) 0
[ $failures = 0 ] && echo "All is as told." || echo "$failures thing(s) are not as told."
[ $failures = 0 ]
