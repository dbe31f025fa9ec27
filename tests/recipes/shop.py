"""Providers as people have them, behind one MCP server: a payment API, a mail service, a git host, a table in a
database, a note store, and a payment API that knows idempotency keys. LEDGER, a file of JSON lines written before any
answer, is the independent record of what was done; nothing here refuses a duplicate unless it is asked under a key.

    GET  /v1/refunds/search?query=metadata['reference']:'…'   search by metadata; {"data": […], "has_more": …}
    GET  /v1/messages?message_id=…                            a list; parameters that it does not know are not looked at
    GET  /repos/shop/orders/git/ref/tags/NAME                 the one record, or 404
    GET  /search/issues?q=…                                   full text; {"items": […], "incomplete_results": …}
    POST /mcp                                                 tools refund, send_mail, tag, open_issue, book, note, charge,
                                                              ship; find_note, which reads
    POST /crowd/N                                             lists begin with other people's records from now on, and
                                                              have more; N = 0: no longer

What becomes of an order the first time is the word before the first '-' in it:
    cut     it is done, and the connection is cut before the answer
    hang    it is done, and the answer never comes
    late    the connection is cut, and it is done LATE seconds after
    lag     it is done, the connection is cut, and searches know it LAG seconds after
    drop    it is never done, and the connection is cut
    deaf    (charge) it is done; every request under its key is cut until DEAF seconds after the first
    mute    (charge) every request under its key is cut, and nothing is done, until DEAF seconds after the first
    refuse  the provider says why it does not do it
    other   it is done and answered, as everything is the second time
"""
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LEDGER = os.environ["LEDGER"]
LATE, LAG, DEAF, HANG = (float(os.environ.get(name, "2")) for name in ("LATE", "LAG", "DEAF", "HANG"))
LOCK = threading.RLock()
WRITES = ("refund", "send_mail", "tag", "open_issue", "book", "note", "charge", "ship")
CUT = object()  # in place of an answer


class Shop:
    def __init__(self):
        self.records = []     # of every tool, oldest first
        self.begun = {}       # (tool, order) -> how often it was asked for
        self.keys = {}        # key -> (when first asked, answer or None)
        self.crowd = 0

    def do(self, tool, arguments, reference, key="", lag=0.0):
        """Carries it out; the answer."""
        with LOCK:
            number = len(self.records) + 1
            record = {"tool": tool, "order": arguments["order"], "reference": reference, "key": key,
                      "amount": arguments.get("amount", 0), "id": f"{tool}_{number}", "at": time.time()}
            with open(LEDGER, "a", encoding="utf-8") as ledger:
                ledger.write(json.dumps(record) + "\n")
                ledger.flush()
                os.fsync(ledger.fileno())
            record["visible_at"] = time.time() + lag
            self.records.append(record)
        if tool == "book":
            book(record)
        return {"id": record["id"], "status": "succeeded", "amount": record["amount"]}

    def known(self, tool):
        """What a search of now finds, other people's records first."""
        with LOCK:
            mine = [r for r in self.records if r["tool"] == tool and r["visible_at"] <= time.time()]
            others = [{"tool": tool, "order": "x", "reference": f"{i:032x}", "amount": 1, "id": f"other_{i}"}
                      for i in range(self.crowd)]
            return others, mine

    def call(self, tool, arguments, reference):
        order = arguments["order"]
        fate = order.split("-")[0]
        if tool == "charge":
            return self.charge(arguments, fate)
        with LOCK:
            count = self.begun[(tool, order)] = self.begun.get((tool, order), 0) + 1
        if count > 1:
            fate = "again"
        if fate == "refuse":
            return "the order is closed: nothing was done"
        if fate == "late":
            threading.Timer(LATE, self.do, (tool, arguments, reference)).start()
        if fate in ("late", "drop"):
            return CUT
        answer = self.do(tool, arguments, reference, lag=LAG if fate == "lag" else 0)
        if fate == "hang":
            time.sleep(HANG)
        return CUT if fate in ("cut", "hang", "lag") else answer

    def charge(self, arguments, fate):
        """As providers with idempotency keys do it: one act a key, and its answer ever after."""
        key = arguments["idempotency_key"]
        with LOCK:
            first, answer = self.keys.get(key, (time.time(), None))
            deaf = fate in ("deaf", "mute") and time.time() - first < DEAF
            if answer is None and not (deaf and fate == "mute"):
                answer = self.do("charge", arguments, "", key)
            self.keys[key] = (first, answer)
            return CUT if deaf else answer


SHOP = Shop()


def book(record):
    """The row that is the effect: a table of a real PostgreSQL, where there is one."""
    if "PGHOST" not in os.environ:
        return
    subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", f"reference={record['reference']}",
                    "-v", f"number={record['id']}", "-v", f"amount={record['amount']}"],
                   input="INSERT INTO shop.bookings (reference, number, amount, state)"
                         " VALUES (:'reference', :'number', :'amount', 'booked');",
                   text=True, check=True, capture_output=True, timeout=60)


def search_refunds(query):
    found = re.fullmatch(r"metadata\['reference'\]:'([0-9a-z]*)'", query.get("query", ""))
    if not found:
        return 400, {"error": {"message": "the query cannot be read"}}
    _, mine = SHOP.known("refund")
    data = [{"id": r["id"], "object": "refund", "amount": r["amount"], "status": "succeeded",
             "metadata": {"reference": r["reference"], "order": r["order"]}}
            for r in mine if r["reference"] == found.group(1)]
    # A shard that is behind: nothing yet, and more to come.
    return 200, {"object": "search_result", "data": data, "has_more": SHOP.crowd > 0 and not data}


def list_messages(query):
    wanted = query.get("message_id")
    others, mine = SHOP.known("send_mail")
    if wanted:
        others, mine = others[:], [r for r in mine if f"<{r['reference']}@shop.example>" == wanted]
    messages = [{"id": r["id"], "message_id": f"<{r['reference']}@shop.example>", "status": "delivered"}
                for r in others + mine]
    page = messages[:10]
    return 200, {"messages": page, "has_more": len(messages) > len(page)}


def find_tag(name):
    others, mine = SHOP.known("tag")
    for r in mine:
        if f"order-{r['reference']}" == name:
            return 200, {"ref": f"refs/tags/{name}", "object": {"type": "commit", "sha": r["id"]}}
    return 404, {"message": "Not Found"}


def search_issues(query):
    words = query.get("q", "").split()
    others, mine = SHOP.known("open_issue")
    items = [{"number": r["id"], "state": "open", "title": r["order"], "body": f"Opened by an agent.\n\nref: {r['reference']}\n"}
             for r in others + mine if not words or any(w in r["reference"] for w in words) or r in others]
    return 200, {"total_count": len(items), "incomplete_results": SHOP.crowd > 0, "items": items[:20]}


def find_note(arguments):
    others, mine = SHOP.known("note")
    notes = [{"id": r["id"], "reference": r["reference"], "text": r["order"]}
             for r in others + mine if r in others or r["reference"] == arguments.get("reference")]
    return {"notes": notes, "more": SHOP.crowd > 0}


SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}, "amount": {"type": "integer"}}}


def mcp(message, headers):
    """Status and answer; CUT for none."""
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                           "serverInfo": {"name": "shop", "version": "1"}}}
    if method == "tools/list":
        return {"result": {"tools": [{"name": name, "inputSchema": SCHEMA} for name in WRITES + ("find_note",)]}}
    if method != "tools/call":
        return {"error": {"code": -32601, "message": "no such method"}}
    tool, arguments, meta = params["name"], params.get("arguments", {}), params.get("_meta", {})
    if tool == "find_note":
        answer = find_note(arguments)
        return {"result": {"content": [{"type": "text", "text": json.dumps(answer)}], "structuredContent": answer}}
    reference = (arguments.get("reference") or meta.get("shop.example/reference") or headers.get("X-Reference") or "")
    answer = SHOP.call(tool, arguments, reference)
    if answer is CUT:
        return CUT
    if isinstance(answer, str):
        return {"result": {"content": [{"type": "text", "text": answer}], "isError": True}}
    return {"result": {"content": [{"type": "text", "text": json.dumps(answer)}]}}


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):  # pylint: disable=arguments-differ
        pass

    def reply(self, status, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        tags = "/repos/shop/orders/git/ref/tags/"
        if self.headers.get("Authorization") != "Bearer a-key-of-the-shop" and url.path != "/mcp":
            return self.reply(401, {"message": "who are you?"})
        if url.path == "/v1/refunds/search":
            return self.reply(*search_refunds(query))
        if url.path == "/v1/messages":
            return self.reply(*list_messages(query))
        if url.path.startswith(tags):
            return self.reply(*find_tag(urllib.parse.unquote(url.path[len(tags):])))
        if url.path == "/search/issues":
            return self.reply(*search_issues(query))
        return self.reply(405 if url.path == "/mcp" else 404, {"message": "no such path"})

    def do_DELETE(self):
        self.reply(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path.startswith("/crowd/"):
            SHOP.crowd = int(self.path[7:])
            return self.reply(200, {})
        message = json.loads(body)
        if "id" not in message or "method" not in message:
            return self.reply(202)
        answer = mcp(message, self.headers)
        if answer is CUT:
            self.close_connection = True
            return None
        return self.reply(200, {"jsonrpc": "2.0", "id": message["id"], **answer})


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def main():
    server = Server(("127.0.0.1", 0), Http)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
