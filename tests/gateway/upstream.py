"""An MCP server that is nothing but honest: each effect is a line in a file of its own, written before the answer.

What a call does is in its arguments: {"text": "...", "then": "answer" | "die" | "sleep" | "garbage" | "error" | "silence",
"seconds": 1, "status": 502}. Speaks on stdio, or with --http on a port that it prints. A file LEDGER.tools holds its
tools, if it is there.
"""
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LEDGER = os.environ["LEDGER"]
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [{"name": name, "description": "appends a line", "inputSchema": SCHEMA, "x-number": 12345678901234567890}
         for name in ("append", "other", "look")]


def tools():
    if not os.path.exists(LEDGER + ".tools"):
        return TOOLS
    with open(LEDGER + ".tools") as file:
        return json.load(file)


def append(text):
    with open(LEDGER, "a") as ledger:
        ledger.write(text + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())


def text_result(text, error=False):
    result = {"content": [{"type": "text", "text": text}]}
    if error:
        result["isError"] = True
    return result


def first_under(key):
    """Whether this is the first request with this key; like a provider that remembers keys for good."""
    append("# key %s" % key)
    try:
        os.close(os.open("%s.key-%s" % (LEDGER, key), os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def keyed(arguments, send):
    """A tool that carries out one call a key. `then` says what it does the first time, `again` what every other time."""
    first = first_under(arguments["key"])
    if first:
        append(arguments.get("text", ""))
    then = arguments.get("then" if first else "again", "answer")
    if then in ("sleep", "die late"):
        time.sleep(arguments.get("seconds", 3))
    if then in ("die", "die late"):
        os._exit(9)
    if then == "error":
        return {"result": text_result("the account is closed", error=True)}
    if then == "lost":
        return {"result": text_result("fetch failed", error=True)}
    if then == "rpc":
        return {"error": {"code": -32602, "message": "as asked"}}
    return {"result": text_result("done: " + arguments.get("text", ""))}


def progress(params, send):
    token = params.get("_meta", {}).get("progressToken")
    if token is not None:
        send({"jsonrpc": "2.0", "method": "notifications/progress",
              "params": {"progressToken": token, "progress": 1, "total": 2,
                         "message": params.get("arguments", {}).get("text", "")}})


def call(params, send, ask):
    arguments = params.get("arguments", {})
    then = arguments.get("then", "answer")
    if params["name"] == "pay":
        return keyed(arguments, send)
    if params["name"] == "look":
        return {"result": text_result(json.dumps(params, sort_keys=True))}
    append(arguments.get("text", ""))
    progress(params, send)
    if then == "big":
        return {"result": text_result("x" * arguments["bytes"])}
    if then == "log":
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "a secret"}})
    if then == "changed":
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if then == "die":
        os._exit(9)
    if then == "sleep":
        time.sleep(arguments.get("seconds", 1))
    if then == "error":
        return {"result": text_result(arguments.get("words", "the account is closed"), error=True)}
    if then == "rpc":
        return {"error": {"code": arguments["code"], "message": "as asked"}}
    if then in ("silence", "garbage"):
        return then
    if then == "ask":
        answer = ask({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}})
        return {"result": text_result(json.dumps(answer, sort_keys=True))}
    return {"result": text_result("done: " + arguments.get("text", ""))}


def handle(message, send, ask):
    """The answer's members, None for a notification, or a word for what is no answer."""
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        append("# capabilities " + json.dumps(params["capabilities"], sort_keys=True))
        return {"result": {"protocolVersion": params["protocolVersion"],
                           "capabilities": {"tools": {}, "resources": {"subscribe": True}, "prompts": {},
                                            "logging": {}, "completions": {}},
                           "serverInfo": {"name": "ledger", "version": "1"}}}
    if method == "tools/list":
        return {"result": {"tools": tools()}}
    if method == "tools/call":
        return call(params, send, ask)
    if method == "resources/list":
        return {"result": {"resources": [{"uri": "ledger://all", "name": "all"}]}}
    if method == "resources/templates/list":
        return {"result": {"resourceTemplates": []}}
    if method == "resources/read":
        return {"result": {"contents": [{"uri": params["uri"], "text": "the ledger"}]}}
    if method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel", "ping"):
        if method != "ping":
            append("# " + method)
        if method == "resources/subscribe":
            send({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": params["uri"]}})
        return {"result": {}}
    if method == "prompts/list":
        return {"result": {"prompts": [{"name": "greet"}]}}
    if method == "prompts/get":
        return {"result": {"messages": [{"role": "user", "content": {"type": "text", "text": params["name"]}}]}}
    if method == "completion/complete":
        return {"result": {"completion": {"values": [params["ref"].get("name", params["ref"].get("uri"))]}}}
    if "id" in message and method:
        return {"error": {"code": -32601, "message": "no such method"}}
    return None


class Asked:
    """Requests of ours to the client, and what it answered."""

    def __init__(self):
        self.answers, self.changed, self.last = {}, threading.Condition(), 0

    def ask(self, send, request):
        with self.changed:
            self.last += 1
            number = "ask-%d" % self.last
        send({"jsonrpc": "2.0", "id": number, **request})
        with self.changed:
            self.changed.wait_for(lambda: number in self.answers, 20)
            return self.answers.get(number)

    def take(self, message):
        with self.changed:
            self.answers[message["id"]] = message.get("result", message.get("error"))
            self.changed.notify_all()


ASKED = Asked()


def stdio():
    lock = threading.Lock()

    def send(message):
        with lock:
            sys.stdout.write(message if isinstance(message, str) else json.dumps(message) + "\n")
            sys.stdout.flush()

    def work(message):
        answer = handle(message, send, lambda request: ASKED.ask(send, request))
        if answer == "garbage":
            send('{"jsonrpc":"2.0","id":%d,"result":7}\n' % message["id"])
        elif isinstance(answer, dict):
            send({"jsonrpc": "2.0", "id": message["id"], **answer})

    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            ASKED.take(message)
        else:
            threading.Thread(target=work, args=(message,), daemon=True).start()


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):
        pass

    def reply(self, status, body=b"", content_type="application/json", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if body:
            self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        append("# deleted")
        self.reply(200)

    def event(self, message):
        data = ("data: %s\n\n" % json.dumps(message)).encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        arguments = message.get("params", {}).get("arguments", {})
        if "id" not in message or "method" not in message:
            if "method" not in message:
                ASKED.take(message)
            return self.reply(202)
        if "status" in arguments and "key" in arguments:
            if first_under(arguments["key"]):
                append(arguments.get("text", ""))
                return self.reply(arguments["status"], b"{}")
        elif "status" in arguments:
            if arguments["status"] >= 500:
                append(arguments.get("text", ""))
            return self.reply(arguments["status"], b"{}")
        for name in ("Idempotency-Key", "Authorization"):
            if name in self.headers:
                append("# header %s" % name)
        headers = [("Mcp-Session-Id", "abc")] if message["method"] == "initialize" else []
        if message["method"] == "tools/list":
            append("# tools/list")
            if os.path.exists(LEDGER + ".down"):
                return self.reply(503)
        if message["method"] != "tools/call":
            answer = handle(message, lambda unused: None, None)
            return self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode(),
                              headers=headers)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        answer = handle(message, self.event, lambda request: ASKED.ask(self.event, request))
        if isinstance(answer, dict):
            self.event({"jsonrpc": "2.0", "id": message["id"], **answer})
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True


def main():
    if "--http" in sys.argv:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Http)
        print(server.server_address[1], flush=True)
        server.serve_forever()
    else:
        stdio()


main()
