#!/usr/bin/env python3
"""A small MCP server for trying things out: a payment provider that carries out every refund it is asked for.

usage: payments.py FOLDER      speaks MCP (2025-11-25 and before) on stdin and stdout

  FOLDER/ledger.jsonl   a line for each refund that was carried out, on disk before anybody is answered
  FOLDER/lose-next      while this file is there, the next refund is carried out and the server dies without an answer
"""

import fcntl
import json
import os
import sys

LEDGER, LOSE_NEXT = (os.path.join(sys.argv[1], name) for name in ("ledger.jsonl", "lose-next"))
REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
TOOLS = [
    {"name": "refund", "description": "Pays money back to a customer, in US cents.",
     "inputSchema": {"type": "object", "required": ["customer", "amount"], "properties": {
         "customer": {"type": "string"}, "amount": {"type": "integer", "minimum": 1}}}},
    {"name": "refunds", "description": "Lists the refunds that were carried out.",
     "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]


class Refused(Exception):
    """A JSON-RPC error: its code, and what is wrong."""


def ledger():
    try:
        with open(LEDGER, encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def refund(arguments):
    customer, amount = arguments.get("customer"), arguments.get("amount")
    if not isinstance(customer, str) or isinstance(amount, bool) or not isinstance(amount, int) or amount < 1:
        raise Refused(-32602, "refund needs a customer (text) and an amount (a whole number of cents, 1 or more)")
    with open(LEDGER, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # each client has a process of its own here
        line = json.dumps({"refund": f"r_{len(ledger()) + 1:04}", "customer": customer, "amount": amount})
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
    if os.path.exists(LOSE_NEXT):
        os.remove(LOSE_NEXT)
        os._exit(1)
    return line


def answer(method, params):
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {"protocolVersion": asked if asked in REVISIONS else REVISIONS[0], "capabilities": {"tools": {}},
                "serverInfo": {"name": "payments", "version": "1"}}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call" and params.get("name") == "refund":
        return {"content": [{"type": "text", "text": refund(params.get("arguments") or {})}]}
    if method == "tools/call" and params.get("name") == "refunds":
        return {"content": [{"type": "text", "text": "\n".join(ledger()) or "none"}]}
    if method == "tools/call":
        raise Refused(-32602, "no such tool")
    raise Refused(-32601, "no such method")


for text in sys.stdin:
    message = json.loads(text)
    if "id" not in message or "method" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        reply["result"] = answer(message["method"], message.get("params") or {})
    except Refused as error:
        reply["error"] = {"code": error.args[0], "message": error.args[1]}
    print(json.dumps(reply), flush=True)
