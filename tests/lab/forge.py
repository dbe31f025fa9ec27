"""Changes a permit's exported receipts as a forger would, and asks `tally receipt verify`, and openssl with nothing of ours."""
import base64
import json
import shutil
import subprocess

TYPE = "application/vnd.tallystick.receipt.v1+protobuf"


def receipts(stand):
    """What was forged and noticed. `noticed`: told as bad, or as incomplete where one is missing or its key is not known."""
    good = stand.folder / "good"
    stand.run_tally("receipt", "export", "--permit", stand.permit, "--out", str(good), who="auditor")
    names = sorted(path.name for path in good.glob("*.dsse.json"))
    one, other = by_kind(stand, good, names)
    assert verify(stand, good) == 0, "receipts that nobody changed"
    noticed, openssl = {}, {}

    def forged(how, change, wanted):
        folder = stand.folder / how
        shutil.copytree(good, folder)
        change(folder)
        noticed[how] = verify(stand, folder) == wanted
        openssl[how] = not openssl_verifies(folder, one)

    def edit(folder, name, **members):
        envelope = json.loads((folder / name).read_text(encoding="utf-8"))
        envelope["signatures"][0].update({k: v for k, v in members.items() if k in ("sig", "keyid")})
        envelope.update({k: v for k, v in members.items() if k == "payload"})
        (folder / name).write_text(json.dumps(envelope), encoding="utf-8")

    envelopes = {name: json.loads((good / name).read_text(encoding="utf-8")) for name in (one, other)}
    payload = base64.b64decode(envelopes[one]["payload"])

    def exchanged(folder):
        edit(folder, one, payload=envelopes[other]["payload"])
        edit(folder, other, payload=envelopes[one]["payload"])

    def altered(folder):
        changed = bytearray(payload)
        changed[len(changed) // 2] ^= 1
        edit(folder, one, payload=base64.b64encode(bytes(changed)).decode())

    def unknown_key(folder):
        """The forger's own, under the name of ours."""
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", folder / "forger.pem"], check=True, capture_output=True)
        (folder / "signed").write_bytes(encoding(payload))
        done = subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", folder / "forger.pem", "-rawin", "-in", folder / "signed"],
                              check=True, capture_output=True)
        edit(folder, one, sig=base64.b64encode(done.stdout).decode())

    def retired_key(folder):
        """Signed after the key was retired, as far as whoever verifies knows."""
        keys = json.loads((folder / "keys.json").read_text(encoding="utf-8"))
        retire(keys)
        (folder / "keys.json").write_text(json.dumps(keys), encoding="utf-8")

    forged("dropped", lambda folder: (folder / one).unlink(), 3)
    forged("exchanged", exchanged, 1)
    forged("altered", altered, 1)
    forged("unknown-key", unknown_key, 1)
    forged("retired-key", retired_key, 1)
    return {"forged": len(noticed), "noticed": sum(noticed.values()), "not_noticed": [how for how, was in noticed.items() if not was],
            "openssl_good": int(openssl_verifies(good, one)),
            "openssl_noticed": sum(openssl[how] for how in ("exchanged", "altered", "unknown-key"))}


def by_kind(stand, folder, names):
    """Two receipts from the middle of the chain."""
    listed = stand.run_tally("receipt", "list", "--permit", stand.permit, who="auditor")["receipts"]
    chosen = [f"{one['receipt_id']}.dsse.json" for one in listed if one["kind"] == "CALL_SUCCEEDED"][:2]
    assert len(chosen) == 2 and set(chosen) <= set(names), f"{chosen} in {folder}"
    return chosen


def retire(keys):
    """Every key, before the first receipt."""
    for key in keys["keys"]:
        key.update(not_after_us=key["not_before_us"] + 1, status="retired")


def encoding(payload):
    return f"DSSEv1 {len(TYPE)} {TYPE} {len(payload)} ".encode() + payload


def verify(stand, folder):
    done = subprocess.run([stand.ground.tally, "receipt", "verify", *sorted(folder.glob("*.dsse.json")), "--keys", folder / "keys.json"],
                          capture_output=True, text=True, timeout=120, check=False)
    (folder / "said").write_text(done.stdout + done.stderr, encoding="utf-8")
    return done.returncode


def openssl_verifies(folder, name):
    """As docs/verify.md does it: no code of ours."""
    if not (folder / name).exists():
        return True  # nothing to look at
    envelope = json.loads((folder / name).read_text(encoding="utf-8"))
    payload, signature = base64.b64decode(envelope["payload"]), base64.b64decode(envelope["signatures"][0]["sig"])
    (folder / "signed.bin").write_bytes(encoding(payload))
    (folder / "signature.bin").write_bytes(signature)
    key, taking = [], False
    for line in (folder / "keys.pem").read_text(encoding="utf-8").splitlines():
        words = line.split()
        taking = taking or (len(words) > 1 and words[0] == "Key" and words[1] == envelope["signatures"][0]["keyid"])
        if taking:
            key.append(line)
        if line.startswith("-----END"):
            taking = False
    (folder / "key.pem").write_text("\n".join(key) + "\n", encoding="utf-8")
    done = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", folder / "key.pem", "-rawin", "-in",
                           folder / "signed.bin", "-sigfile", folder / "signature.bin"], capture_output=True, check=False)
    return done.returncode == 0
