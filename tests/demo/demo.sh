#!/usr/bin/env bash
# The main job, end to end, with real processes on loopback: tallyd with its private PostgreSQL, a payment provider with a
# ledger of its own, and a gateway of one page. Exits non-zero if anything is not as told.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/stage.sh"

echo "Setting the stage in $work: tallyd with a private PostgreSQL, a provider, one tenant, three credentials, two permits."
set_stage
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
