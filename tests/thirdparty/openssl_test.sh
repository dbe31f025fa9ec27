#!/bin/sh
# Runs the commands of docs/verify.md, as they stand there, on every exported receipt; then on spoiled ones.
# usage: openssl_test.sh docs/verify.md FIXTURES
set -eu
document=$(realpath "$1")
fixtures=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

{
  echo 'set -eu'
  awk '/^## / { section = $0 } section == "## With openssl alone" && /^```/ { inside = /sh$/; next } inside' "$document"
} > "$work/commands.sh"
{
  echo 'set -eu'
  awk '/^## / { section = $0 } section == "## Evidence" && /^```/ { inside = /sh$/; next } inside' "$document"
} > "$work/evidence.sh"
grep -q openssl "$work/evidence.sh" || { echo "docs/verify.md has lost its commands for evidence"; exit 1; }
[ "$(grep -c openssl "$work/commands.sh")" -ge 5 ] || { echo "docs/verify.md has lost its commands"; exit 1; }

cd "$work"
check() { ID=$1 sh commands.sh > out 2>&1; }

count=0
while read -r id; do
  rm -f ./*.bin ./*.pem ./*.json
  cp "$fixtures/$id.dsse.json" "$fixtures/keys.pem" .
  check "$id" || { echo "$id does not verify:"; cat out; exit 1; }
  for said in 'id fits' 'Signature Verified Successfully' 'key id fits'; do
    grep -q "^$said" out || { echo "$id: no '$said' in:"; cat out; exit 1; }
  done
  count=$((count + 1)) last=$id
done < "$fixtures/ids"
id=$last

# Evidence, against the payload that the commands before have taken out of its receipt.
resolved=$(cat "$fixtures/resolved")
rm -f ./*.bin ./*.json
cp "$fixtures/$resolved".* .
check "$resolved" || { echo "the resolution does not verify:"; cat out; exit 1; }
fits() { ID=$resolved sh evidence.sh > out 2>&1 && grep -q '^evidence fits' out; }
fits || { echo "the evidence does not fit its receipt:"; cat out; exit 1; }
printf 'x' >> "$resolved.evidence"
! fits || { echo "other evidence was accepted"; exit 1; }
cp "$fixtures/$resolved.evidence" .
sed 's/"salt_base64": "mpqa/"salt_base64": "mpqb/' "$fixtures/$resolved.evidence.json" > "$resolved.evidence.json"
! cmp -s "$fixtures/$resolved.evidence.json" "$resolved.evidence.json" || { echo "the salt could not be altered"; exit 1; }
! fits || { echo "another salt was accepted"; exit 1; }
[ "$count" -ge 6 ] || { echo "only $count receipts were given"; exit 1; }

# What was signed by one key must fail under another, and a changed payload or signature must fail.
openssl genpkey -algorithm ed25519 -out private.pem 2> /dev/null
keyid=$(sed -n 's/.*"keyid":"\([^"]*\)".*/\1/p' "$id.dsse.json")
{ echo "Key $keyid of tally.example"; openssl pkey -in private.pem -pubout; } > keys.pem
! check "$id" || { echo "another key was accepted"; exit 1; }
cp "$fixtures/keys.pem" .
for member in payload sig; do
  # One base64 digit is replaced by another.
  sed -E 's/("'$member'":".{15})A/\1B/; t; s/("'$member'":".{15})./\1A/' \
    "$fixtures/$id.dsse.json" > "$id.dsse.json"
  ! cmp -s "$fixtures/$id.dsse.json" "$id.dsse.json" || { echo "the $member could not be altered"; exit 1; }
  ! check "$id" || { echo "an altered $member was accepted"; exit 1; }
done
echo "openssl verified $count receipts and evidence by the commands of docs/verify.md, and refused spoiled ones"
