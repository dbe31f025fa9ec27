# The stage for the demo and for tests like it: real processes on loopback, a folder of their own, and nothing left behind.
# To be sourced. Sets work, data, provider, control_port, TALLY_SERVER; credentials lie in $work/ROLE.credential.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -z "${TALLY_BIN:-}" ] || PATH=$TALLY_BIN:$PATH
for program in tallyd tally curl python3 openssl; do
  command -v $program >/dev/null || { echo "$program is not there; run this by ./dev demo or ./dev test" >&2; exit 2; }
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
  if pid=$(head -1 "$data/pg/postmaster.pid" 2>/dev/null) && tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "$data/postgres.conf"; then
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

# tallyd with one tenant and three credentials, and a provider that listens
set_stage() {
  mkdir "$work/provider" "$work/journal"
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
}

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
