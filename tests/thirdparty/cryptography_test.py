"""Verifies every exported receipt with Python's cryptography, from the format's description in docs/verify.md alone.

usage: cryptography_test.py FIXTURES      exit 77: the package is not installed, nothing was checked
"""

import base64
import hashlib
import json
import pathlib
import sys

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    print("skipped: python3-cryptography is not installed")
    sys.exit(77)

TYPE = "application/vnd.tallystick.receipt.v1+protobuf"


def pem_keys(text):
    """Key id → public key, and checks that the id is made of name and key."""
    keys = {}
    for block in text.split("-----END PUBLIC KEY-----\n")[:-1]:
        label, _, body = block.partition("-----BEGIN PUBLIC KEY-----")
        _, key_id, _, name = label.split()
        key = serialization.load_pem_public_key(
            ("-----BEGIN PUBLIC KEY-----" + body + "-----END PUBLIC KEY-----\n").encode()
        )
        assert isinstance(key, Ed25519PublicKey)
        raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        assert hashlib.sha256(name.encode() + b"\n\x01" + raw).hexdigest() == key_id, "key id does not fit"
        keys[key_id] = key
    return keys


def signed_bytes(payload):
    return b"DSSEv1 %d %s %d %s" % (len(TYPE), TYPE.encode(), len(payload), payload)


def refused(key, signature, message):
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return True
    return False


def main():
    folder = pathlib.Path(sys.argv[1])
    keys = pem_keys((folder / "keys.pem").read_text())
    listed = json.loads((folder / "keys.json").read_text())["keys"]
    assert [entry["key_id"] for entry in listed] == list(keys), "keys.json and keys.pem differ"
    ids = (folder / "ids").read_text().split()
    assert len(ids) >= 6, "too few receipts"
    for receipt_id in ids:
        envelope = json.loads((folder / f"{receipt_id}.dsse.json").read_text())
        assert envelope["payloadType"] == TYPE
        (signature,) = envelope["signatures"]
        key = keys[signature["keyid"]]
        raw = base64.b64decode(signature["sig"], validate=True)
        message = signed_bytes(base64.b64decode(envelope["payload"], validate=True))
        assert hashlib.sha256(message).hexdigest() == receipt_id, "receipt id does not fit"
        key.verify(raw, message)
        assert refused(key, raw, message[:-1] + bytes([message[-1] ^ 1])), "an altered payload was accepted"
        assert refused(key, bytes([raw[0] ^ 1]) + raw[1:], message), "an altered signature was accepted"
    print(f"cryptography verified {len(ids)} receipts and refused altered ones")


main()
