"""A payment provider of the tests' own: a ledger, a search that may lag behind it, and all the ways in which an answer can
be no answer. Prints its port. Every request that was asked of /search is kept, decoded, for the test to read.

POST /land      {"ref", "amount", "status", "lag", "id", "extra"}   what was done; `lag` seconds until the search shows it
POST /behave    {"ref", "mode"}                                     how the search answers about that reference
GET  /ledger    all that landed        GET /asked  all questions
GET  /search?ref=R&customer=C&query=Q  {"data": [...], "has_more": false}
POST /search    the same, with a form or JSON body
"""
import http.server
import json
import sys
import threading
import time
import urllib.parse

LOCK = threading.Lock()
LANDED, MODES, ASKED = [], {}, []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def do_GET(self):  # pylint: disable=invalid-name
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/ledger":
            with LOCK:
                return self.answer(200, LANDED)
        if url.path == "/asked":
            with LOCK:
                return self.answer(200, ASKED)
        if url.path == "/empty":
            return self.answer(200, {"data": [], "has_more": False})
        return self.search(urllib.parse.parse_qs(url.query, keep_blank_values=True, strict_parsing=True))

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.body()
        if self.path == "/land":
            order = json.loads(body)
            with LOCK:
                record = {"id": order.get("id", f"re_{len(LANDED)}"), "status": order.get("status", "succeeded"),
                          "amount": order.get("amount", 10), "metadata": {"ref": order["ref"]}, **order.get("extra", {})}
                LANDED.append({"record": record, "seen_from": time.monotonic() + order.get("lag", 0)})
            return self.answer(200, {})
        if self.path == "/behave":
            order = json.loads(body)
            with LOCK:
                MODES[order["ref"]] = order["mode"]
            return self.answer(200, {})
        if self.headers.get("Content-Type") == "application/json":
            return self.search({name: [value] for name, value in json.loads(body).items()})
        return self.search(urllib.parse.parse_qs(body.decode(), keep_blank_values=True, strict_parsing=True))

    def search(self, asked):
        ref = asked.get("ref", [""])[0]
        with LOCK:
            ASKED.append({"path": self.path, "asked": asked,
                          "headers": {name.lower(): value for name, value in self.headers.items()}})
            mode = MODES.get(ref, MODES.get("*", ""))
            now = time.monotonic()
            found = [entry["record"] for entry in LANDED
                     if entry["record"]["metadata"]["ref"] == ref and entry["seen_from"] <= now]
        whole = {"data": found, "has_more": False}
        if mode == "":
            return self.answer(200, whole)
        if mode.isdigit():
            return self.answer(int(mode), {"data": [], "has_more": False})
        if mode == "redirect":
            return self.answer(302, whole, [("Location", "/empty")])
        if mode == "slow":
            time.sleep(1)
            return self.answer(200, whole)
        if mode == "timeout":
            time.sleep(30)
            return None
        if mode == "huge":
            return self.answer(200, {"data": [], "has_more": False, "pad": "x" * (2 << 20)})
        if mode == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b'{"data": [], "has_more": false}')
            self.close_connection = True
            return None
        if mode == "more":
            return self.answer(200, {"data": [], "has_more": True})
        if mode == "others":
            return self.answer(200, {"data": [{"id": "x", "status": "succeeded", "amount": 1}], "has_more": False})
        if mode == "twice":
            return self.answer(200, {"data": found * 2, "has_more": False})
        return self.answer(200, mode.encode())  # as it stands


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        """Those who were killed, or gave up, hang up."""


if __name__ == "__main__":
    SERVER = Server(("127.0.0.1", 0), Handler)
    print(SERVER.server_address[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), SERVER.shutdown()), daemon=True).start()
    SERVER.serve_forever()
