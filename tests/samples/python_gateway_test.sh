#!/usr/bin/env bash
# The sample for gateway authors does what its page says: one send for each refund, whatever is lost.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/tests/demo/stage.sh"
python=/usr/bin/python3
PYTHONPATH=$TALLY_PYTHON:$root/samples/python $python -c 'import grpc, tally_gateway' ||
  { echo "python3-grpcio or the stubs in $TALLY_PYTHON are not there" >&2; failures=1; exit 1; }
set_stage
mint support-py 5 >/dev/null

refund() {
  PYTHONPATH=$TALLY_PYTHON:$root/samples/python TALLY_CREDENTIAL=$work/gateway.credential \
    TALLY_PERMIT_TOKEN=$(cat "$work/support-py.token") PROVIDER=$provider JOURNAL=$work/journal \
    $python "$root/samples/python/refund.py" "$@"
  verdict=$?
}

refund refund-1 anna 2500
expect "a refund" $verdict 0
refund refund-1 anna 2500
expect "the same key" $verdict 0
ledger_says anna 1

order lose-next
refund refund-2 ben 1000
expect "a lost answer" $verdict 20
refund refund-2 ben 1000
expect "the same key after it" $verdict 10
refund refund-2-again ben 1000
expect "a new key after it" $verdict 10
ledger_says ben 1
expect "parked calls" "$(parked_count)" 1

order deaf
refund refund-3 cleo 1000
expect "a refused connection" $verdict 1
order hear
refund refund-3 cleo 1000
expect "the same key once it listens" $verdict 0
ledger_says cleo 1

refund refund-4 dora 99999
expect "more than the permit allows" $verdict 10
ledger_says dora 0
[ $failures = 0 ]
