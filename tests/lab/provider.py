"""A payment provider that speaks MCP over Streamable HTTP, and carries out every refund that it is asked for, duplicates
and all: a line of FOLDER/effects each, on disk before anybody is answered. That file alone says what happened.

usage: provider.py FOLDER [--keyed]

  --keyed   as a careful engineer builds it: one refund for one key, for ever. The key is a header (Idempotency-Key, or X-Payment-Key) or the
            argument idempotency_key. It stands in the effect's own line, so that no crash comes between the two; the same
            key again is answered as before, with other arguments it is refused; two at once wait for each other.

Prints its port. POST /mcp is the tool `refund` {customer, amount}; members are read without regard to case, the last wins,
as some decoders do. GET /refunds?customer=…&reference=… is the look-up. FOLDER/behaviour.json, read at each call, says how
it behaves: {"refunds": {CUSTOMER: [BEHAVIOUR, …]}, "look_up_lag": SECONDS}; the nth behaviour is that of the customer's nth
request, {} and none: does it and says so.

  before   seconds to wait before it is done
  after    seconds to wait between that and the answer (what is answered from the record is answered at once)
  until    a file in FOLDER that must be there before it answers
  words    answers an isError with these words, though it was done
"""
import json
import os
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER, KEYED = sys.argv[1], "--keyed" in sys.argv
LOCK = threading.Lock()
TOOLS = [{"name": "refund", "description": "Refunds an amount, in cents, to a customer.",
          "inputSchema": {"type": "object", "required": ["customer", "amount"], "properties": {
              "customer": {"type": "string"}, "amount": {"type": "integer"}, "idempotency_key": {"type": "string"}}}}]


class Book:
    """The file of effects, and what must be remembered about it while the process runs."""

    def __init__(self):
        self.path = os.path.join(FOLDER, "effects")
        self.by_key, self.at_work, self.seen = {}, {}, {}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                self.by_key = {line["key"]: line for line in map(json.loads, file) if line["key"]}

    def append(self, effect):
        data = (json.dumps(effect) + "\n").encode()
        with LOCK:
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(fd, data)
            os.fsync(fd)
            os.close(fd)
            if effect["key"]:
                self.by_key[effect["key"]] = effect

    def behaviour(self, customer):
        with LOCK:
            number = self.seen[customer] = self.seen.get(customer, 0) + 1
        wanted = orders().get("refunds", {}).get(customer, [])
        return wanted[number - 1] if number <= len(wanted) else {}

    def key_lock(self, key):
        with LOCK:
            return self.at_work.setdefault(key, threading.Lock())

    def found(self, query):
        """What the search knows: it may lag behind."""
        before = time.monotonic() - orders().get("look_up_lag", 0)
        with open(self.path, "a+", encoding="utf-8") as file:
            file.seek(0)
            lines = [json.loads(line) for line in file]
        return [line for line in lines if line["t"] <= before and all(line.get(name) == value for name, value in query.items())]


def orders():
    try:
        with open(os.path.join(FOLDER, "behaviour.json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


BOOK = Book()


def wait_for_file(name):
    for _ in range(6000):
        if not name or os.path.exists(os.path.join(FOLDER, name)):
            return
        time.sleep(0.02)


def text(words, error=False):
    return {"content": [{"type": "text", "text": words}], **({"isError": True} if error else {})}


def folded(pairs):
    return {name.lower(): value for name, value in pairs}


def refund(arguments, key, reference):
    customer, amount = arguments.get("customer"), arguments.get("amount")
    if not isinstance(customer, str) or not isinstance(amount, int):
        return text("customer must be a text and amount a whole number of cents. Nothing was refunded.", error=True)
    behaviour = BOOK.behaviour(customer)
    time.sleep(behaviour.get("before", 0))
    key = key or arguments.get("idempotency_key", "")
    with BOOK.key_lock(key) if KEYED and key else threading.Lock():
        before = BOOK.by_key.get(key) if KEYED and key else None
        if before and (before["customer"], before["amount"]) != (customer, amount):
            return text("This idempotency key stands for another refund. Nothing was refunded.", error=True)
        if not before:
            BOOK.append({"t": time.monotonic(), "customer": customer, "amount": amount, "key": key if KEYED else "",
                         "reference": reference, "text": f"refunded {amount} to {customer}"})
            time.sleep(behaviour.get("after", 0))
            wait_for_file(behaviour.get("until"))
    if "words" in behaviour:
        return text(behaviour["words"], error=True)
    return text(f"refunded {amount} to {customer}")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):  # pylint: disable=arguments-differ
        pass

    def reply(self, status, value=None, headers=()):
        body = json.dumps(value).encode() if value is not None else b""
        self.send_response(status)
        for name, one in headers:
            self.send_header(name, one)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        if url.path != "/refunds":
            return self.reply(405)
        found = BOOK.found({name: values[0] for name, values in urllib.parse.parse_qs(url.query).items()})
        return self.reply(200, {"status": "succeeded" if found else "not_found", "refunds": found})

    def do_DELETE(self):
        self.reply(200)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])), object_pairs_hook=folded)
        method, params = message.get("method"), message.get("params", {})
        if "id" not in message or method is None:
            return self.reply(202)
        headers = []
        if method == "initialize":
            headers = [("Mcp-Session-Id", os.urandom(8).hex())]
            result = {"protocolVersion": params["protocolversion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "provider", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": TOOLS}
        elif method == "tools/call":
            result = refund(params.get("arguments", {}), self.headers.get("Idempotency-Key") or self.headers.get("X-Payment-Key", ""),
                            self.headers.get("X-Reference", ""))
        elif method == "ping":
            result = {}
        else:
            return self.reply(200, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}})
        try:
            self.reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result}, headers)
        except OSError:
            self.close_connection = True  # whoever asked has gone
        return None


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
