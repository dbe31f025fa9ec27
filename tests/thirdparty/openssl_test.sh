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
echo "openssl verified $count receipts by the commands of docs/verify.md, and refused spoiled ones"
