"""An MCP server of the era 2026-07-28, as honest as upstream.py: each effect is a line in a file, written before the
answer. Lines that begin with '#' are notes about what it was asked.

What a call does is in its arguments: {"text": "...", "ask": 2} asks twice for input before it appends the text.
Speaks on stdio, or with --http on a port that it prints. On stdio it knows initialize, too, and notes its use.
"""
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LEDGER = os.environ["LEDGER"]
VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
CAPABILITIES = {"tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True}}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}}
TOOLS = [{"name": name, "description": "appends a line", "inputSchema": SCHEMA}
         for name in ("append", "look", "needs", "change")]


def append(text):
    with open(LEDGER, "a") as ledger:
        ledger.write(text + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())


class Subscriptions:
    """Where changes are told, by the id of the request that asked for it."""

    def __init__(self):
        self.open, self.lock = {}, threading.Lock()

    def add(self, number, filter_, send):
        with self.lock:
            self.open[(number, id(send))] = (filter_, send)
        self.tell(number, send, "notifications/subscriptions/acknowledged", {"notifications": filter_})

    def tell(self, number, send, method, params):
        send({"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": {META + "subscriptionId": number}}})

    def changed(self, uri):
        with self.lock:
            open_ = list(self.open.items())
        for (number, _), (filter_, send) in open_:
            try:
                if filter_.get("toolsListChanged"):
                    self.tell(number, send, "notifications/tools/list_changed", {})
                if uri in filter_.get("resourceSubscriptions", []):
                    self.tell(number, send, "notifications/resources/updated", {"uri": uri})
            except OSError:
                pass

    def remove(self, number, send=None):
        with self.lock:
            self.open = {key: value for key, value in self.open.items()
                         if key[0] != number or (send and value[1] != send)}


SUBSCRIPTIONS = Subscriptions()


def text_result(text):
    return {"result": {"content": [{"type": "text", "text": text}], "resultType": "complete"}}


def call(params, headers):
    arguments = params.get("arguments", {})
    declared = params.get("_meta", {}).get(META + "clientCapabilities", {})
    if params["name"] == "look":
        return text_result(json.dumps({"params": params, "headers": headers}, sort_keys=True))
    if params["name"] == "needs":
        append("# needs sampling")
        if "sampling" not in declared:
            return {"error": {"code": -32021, "message": "sampling is needed",
                              "data": {"requiredCapabilities": {"sampling": {}}}}}
    if params["name"] == "change":
        SUBSCRIPTIONS.changed(arguments["uri"])
        return text_result("changed")
    done = int(params.get("requestState", "0:").split(":")[0])
    append("# round %d %s %s" % (done + 1, params.get("requestState", "-"),
                                 json.dumps(params.get("inputResponses"), sort_keys=True)))
    if done < arguments.get("ask", 0):
        return {"result": {"resultType": "input_required", "requestState": "%d:secret" % (done + 1), "inputRequests": {
            "name": {"method": "elicitation/create", "params": {
                "mode": "form", "message": "Who?",
                "requestedSchema": {"type": "object", "properties": {"who": {"type": "string"}}}}}}}}
    if arguments.get("then") == "refuse":
        return {"error": {"code": -32602, "message": "not like that"}}
    append(arguments.get("text", ""))
    return text_result("done: " + arguments.get("text", ""))


def handle(message, headers=None, legacy=False):
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize" and legacy:
        append("# initialize")
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "ledger", "version": "1"}}}
    if params.get("_meta", {}).get(META + "protocolVersion") != VERSION and not legacy:
        return {"error": {"code": -32022, "message": "2026-07-28 alone",
                          "data": {"supported": [VERSION], "requested": "?"}}}
    if method == "server/discover":
        append("# discover")
        return {"result": {"supportedVersions": [VERSION], "capabilities": CAPABILITIES, "resultType": "complete"}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS, "resultType": "complete", "ttlMs": 60000}}
    if method == "tools/call":
        return call(params, headers)
    if method == "resources/list":
        return {"result": {"resources": [{"uri": "ledger://all", "name": "all"}], "resultType": "complete"}}
    if method == "resources/templates/list":
        return {"result": {"resourceTemplates": [], "resultType": "complete"}}
    if "id" in message:
        return {"error": {"code": -32601, "message": "no such method"}}
    return None


def stdio():
    lock = threading.Lock()
    legacy = False

    def send(message):
        with lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    for line in sys.stdin:
        message = json.loads(line)
        legacy = legacy or message.get("method") == "initialize"
        if message.get("method") == "subscriptions/listen":
            SUBSCRIPTIONS.add(message["id"], message["params"]["notifications"], send)
        elif message.get("method") == "notifications/cancelled":
            SUBSCRIPTIONS.remove(message["params"]["requestId"])
        else:
            answer = handle(message, legacy=legacy)
            if answer:
                send({"jsonrpc": "2.0", "id": message["id"], **answer})


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):
        pass

    def event(self, message):
        data = ("data: %s\n\n" % json.dumps(message)).encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.close_connection = True
        if message.get("method") == "subscriptions/listen":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            SUBSCRIPTIONS.add(message["id"], message["params"]["notifications"], self.event)
            self.rfile.read(1)
            return SUBSCRIPTIONS.remove(message["id"], self.event)
        answer = handle(message, {name.lower(): value for name, value in self.headers.items()
                                  if name.lower().startswith("mcp-")})
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode()
        self.send_response(400 if answer.get("error", {}).get("code") in (-32021, -32022) else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    if "--http" in sys.argv:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Http)
        server.daemon_threads = True
        print(server.server_address[1], flush=True)
        server.serve_forever()
    else:
        stdio()


main()
