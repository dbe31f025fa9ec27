#!/usr/bin/env bash
# A gateway in one page: asks Tallystick, sends the refund at most once, and reports what became of it.
#   gateway.sh KEY CUSTOMER AMOUNT
# Set: TALLY_SERVER, TALLY_CREDENTIAL, TALLY_PERMIT_TOKEN, PROVIDER (its URL), JOURNAL (a folder). Exits as authorize did,
# or with 20 when the refund was sent and nobody knows what became of it.
set -uo pipefail
key=$1
args=$(printf '{"customer": "%s", "amount": %d}' "$2" "$3")
attempt=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')   # one attempt, one id, never used again
answer_file=$(mktemp) && trap 'rm -f "$answer_file"' EXIT

# What must survive a crash is on disk before the next step.
journal() { echo "$1 $key" >>"$JOURNAL/$attempt" && sync "$JOURNAL/$attempt"; }
# Milliseconds on the clock that goes on while the machine sleeps.
clock() { awk '{ printf "%d", $1 * 1000 }' /proc/uptime; }
field() { sed -n "s/^  \"$1\": \"\{0,1\}\([^\",]*\).*/\1/p" <<<"$grant"; }
commit() {
  journal "$1" && tally --timeout 2s call commit "$(field call_id)" --attempt-id "$attempt" --outcome "$@" >/dev/null 2>&1 ||
    echo "  gateway: could not report $1; the lease will end and the call will be parked"
}

journal asking
started=$(clock)
grant=$(tally -o json call authorize --key "$key" --attempt-id "$attempt" --tool payments__refund --args "$args" \
  --lease "${LEASE:-60s}" 2>/dev/null)
verdict=$?
case $verdict in
  0) ;;
  14) echo "  gateway: REPLAY, not sent. The stored answer: $(field result_base64 | base64 -d)"; exit 14 ;;
  *) echo "  gateway: $(field disposition) $(field code), not sent (exit $verdict)"; exit $verdict ;;
esac

journal sending
if [ $(($(clock) - started)) -ge "$(field send_within_ms)" ]; then
  echo "  gateway: too late to send"
  commit not-sent
  exit 13
fi
# -q: no configuration file may add a retry. Nothing stands between the check above and this.
status=$(curl -q -sS --max-time 10 -o "$answer_file" -w '%{http_code}' -H 'Content-Type: application/json' \
  --data-binary "$args" "$PROVIDER/refunds" 2>/dev/null)
sent=$?

case $sent:$status in
  0:200) echo "  gateway: sent, and answered: $(cat "$answer_file")"; commit succeeded --result "@$answer_file" ;;
  0:400 | 0:422) echo "  gateway: sent, and refused by the provider ($status)"; commit tool-error --no-effect ;;
  7:*) echo "  gateway: could not connect, so not one byte was sent"; commit not-sent; exit 7 ;;
  *) echo "  gateway: sent, and no answer came (curl says $sent)"; commit uncertain; exit 20 ;;
esac
