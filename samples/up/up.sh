#!/usr/bin/env bash
# tallyd, a tenant with a permit, and tally-gateway with an MCP server behind it, until Ctrl-C. Prints what goes into the
# configuration of an MCP client.
#   up.sh FOLDER [PORT]     FOLDER: tallyd's data directory, made if need be; PORT: the gateway's, 0 for a free one
# tallyd, tally and tally-gateway are on PATH. All that is kept lies in FOLDER; the next run goes on with it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=$1 port=${2:-8700}
home=$data/demo
umask 077

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
die() { printf 'up: %s\n' "$*" >&2; exit 1; }

# ---------------------------------------------------------------- processes

tallyd_pid='' gateway_pid=''

stop() {  # stop PID SECONDS   asks it to end, and insists after a while
  [ -n "$1" ] && kill -TERM "$1" 2>/dev/null || return 0
  local i
  for ((i = 0; i < $2 * 10; i++)); do kill -0 "$1" 2>/dev/null || break; sleep 0.1; done
  kill -KILL "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}

# The gateway first: what it still has to report, it reports to tallyd.
cleanup() { trap '' INT TERM; stop "$gateway_pid" 40; stop "$tallyd_pid" 40; }
trap cleanup EXIT
trap 'echo; say "stopping"; exit 0' INT TERM

# start NAME COMMAND…   sets `started`. Ctrl-C is for this script alone, which ends them in order (set -m); should it be
# killed, they are told to end.
start() {
  local log=$home/$1.log; shift
  : >"$log"  # now: what the last run wrote says nothing about this one
  set -m
  setpriv --pdeathsig TERM -- "$@" >>"$log" 2>&1 </dev/null &
  started=$!
  set +m
}

# until_true PID LOG WHAT COMMAND…
until_true() {
  local pid=$1 log=$2 what=$3 i; shift 3
  for ((i = 0; i < 300; i++)); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
  done
  tail -5 "$log" >&2
  die "$what. The end of its log is above ($log)."
}

# ---------------------------------------------------------------- tallyd, with a tenant and its people

[ -f "$data/admin.credential" ] || tallyd init --data-dir "$data" >/dev/null || die "tallyd init failed; nothing was started"
mkdir -p "$home"
export TALLY_SERVER=unix:$data/tallyd.sock TALLY_CREDENTIAL=$data/admin.credential
start tallyd tallyd serve --data-dir "$data"
tallyd_pid=$started
until_true "$tallyd_pid" "$home/tallyd.log" "tallyd does not serve" tally --timeout 1s tenant list

if [ ! -f "$home/ready" ]; then
  [[ $(tally -o json tenant list) == *'"demo"'* ]] || tally tenant create demo >/dev/null
  for role in operator gateway auditor; do
    [ -f "$home/$role.credential" ] || tally principal create --role $role --tenant demo --out "$home/$role.credential" >/dev/null
  done
  touch "$home/ready"
fi

# A permit lasts 30 days, or until it is revoked: then there is a new one.
export TALLY_CREDENTIAL=$home/operator.credential
active() {
  [ -s "$home/permit.id" ] && [[ $(tally -o json permit show "$(cat "$home/permit.id")") == *'"state": "ACTIVE"'* ]]
}
if ! active; then
  rm -f "$home/permit.token"
  tally -o json permit mint -f "$here/permit.toml" --out "$home/permit.token" |
    sed -n 's/^ *"permit_id": "\(.*\)".*/\1/p' >"$home/permit.id"
fi
token=$(cat "$home/permit.token")

# ---------------------------------------------------------------- the gateway

# configure NAME MORE   a gateway's configuration; each gateway has a journal of its own
configure() {
  cat >"$home/$1.toml" <<TOML
$2
[tallyd]
server = "$TALLY_SERVER"
credential_file = "gateway.credential"

[journal]
path = "$1.journal"

[audit]
path = "$1.audit.jsonl"

[upstreams.payments]
command = "python3"
args = ["$here/payments.py", "$home"]
TOML
}
configure http "[listen]
address = \"127.0.0.1:$port\"
"
configure stdio ""
start gateway tally-gateway serve "$home/http.toml"
gateway_pid=$started
until_true "$gateway_pid" "$home/gateway.log" "tally-gateway does not serve" grep '"event":"listening"' "$home/gateway.log"
port=$(sed -n 's/.*"event":"listening".*"port":"\{0,1\}\([0-9]*\).*/\1/p' "$home/gateway.log")

say "tallyd and tally-gateway serve until Ctrl-C. For an MCP client that speaks HTTP:"
cat <<TEXT
{"mcpServers": {"tallystick": {"type": "http", "url": "http://127.0.0.1:$port/mcp", "headers": {"Authorization": "Bearer $token"}}}}
TEXT
say "For one that starts a command:"
cat <<TEXT
{"mcpServers": {"tallystick": {"command": "$(command -v tally-gateway)", "args": ["serve", "--stdio", "$home/stdio.toml"], "env": {"TALLY_PERMIT_TOKEN": "$token"}}}}
TEXT
say "Behind it is $here/payments.py; refunds that it carried out are in $home/ledger.jsonl."
say "For tally and curl, in another terminal (credentials of the tenant demo are in \$UP):"
cat <<TEXT
export TALLY_SERVER=$TALLY_SERVER
export TALLY_CREDENTIAL=$data/admin.credential
export PATH=$(dirname "$(command -v tally)"):\$PATH
export UP=$home
TEXT

wait -n "$tallyd_pid" "$gateway_pid" || true
for program in tallyd gateway; do
  pid=${program}_pid
  kill -0 "${!pid}" 2>/dev/null || { tail -5 "$home/$program.log" >&2; die "$program has ended by itself. The end of its log is above ($home/$program.log)."; }
done
