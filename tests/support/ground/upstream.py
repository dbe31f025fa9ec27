"""An MCP server that does as it is told, and says all there is to say to its client. Effects are lines of LEDGER, on disk
before the answer: the independent record of what was done.

tools/call append {"text", "then", …}: writes `text` to the ledger; then
  answer      answers (default)
  await       answers once the file `until` is there
  die         ends, and with it the connection; "die once": not when it is called with the same `key` again
  error       an isError with `words`
  tell        says `secret` to its client in every way there is: progress, log message, resource updated, list changed,
              sampling, elicitation and roots requests (those the client declared, or all with `bold`); then answers with
              what came back
Resources, prompts and completions of a session have the secrets in them that it was told.
Speaks 2025-11-25 on stdio, or with --http on a port that it prints, with a session id for each client and a GET stream.
"""
import json
import os
import queue
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LEDGER = os.environ["LEDGER"]
LOCK = threading.Lock()


def append(text):
    with LOCK, open(LEDGER, "a", encoding="utf-8") as ledger:
        ledger.write(text + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())


def first_with(key):
    with LOCK:
        note = f"# key {key}\n"
        with open(LEDGER, "a+", encoding="utf-8") as ledger:
            ledger.seek(0)
            if note in ledger.readlines():
                return False
            ledger.write(note)
            return True


def text_result(text, error=False):
    return {"content": [{"type": "text", "text": text}], **({"isError": True} if error else {})}


class Session:
    """One client. `send` puts a message on the stream of the request at hand, or on the general one."""

    def __init__(self):
        self.id, self.declared, self.told = secrets.token_hex(8), {}, []
        self.general = queue.Queue()
        self._answers, self._changed, self._asked = {}, threading.Condition(), 0

    def ask(self, send, method, params):
        with self._changed:
            self._asked += 1
            number = f"{self.id}-{self._asked}"
        send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        with self._changed:
            self._changed.wait_for(lambda: number in self._answers, 20)
            return self._answers.get(number)

    def take_answer(self, message):
        with self._changed:
            self._answers[message["id"]] = message.get("result", message.get("error"))
            self._changed.notify_all()

    def tell(self, arguments, params, send, general):
        secret, came_back = arguments["secret"], []
        self.told.append(secret)
        token = params.get("_meta", {}).get("progressToken")

        def note(method, params, by=send):
            by({"jsonrpc": "2.0", "method": method, "params": params})

        if token is not None:
            note("notifications/progress", {"progressToken": token, "progress": 1, "message": secret})
        # Tokens of other people's calls, guessed.
        for guess in range(1, 8):
            note("notifications/progress", {"progressToken": guess, "progress": 0.5, "message": "guess " + secret})
        note("notifications/message", {"level": "error", "data": secret})
        note("notifications/message", {"level": "error", "data": "general " + secret}, general)
        for by in (send, general):
            note("notifications/resources/updated", {"uri": f"ledger://{secret}"}, by)
            note("notifications/tools/list_changed", {"_meta": {"com.example/secret": secret}}, by)
        questions = {"sampling": ("sampling/createMessage", {"messages": [{"role": "user", "content": {
                         "type": "text", "text": secret}}], "maxTokens": 5}),
                     "elicitation": ("elicitation/create", {"message": secret, "requestedSchema": {
                         "type": "object", "properties": {}}}),
                     "roots": ("roots/list", {"_meta": {"com.example/secret": secret}})}
        for capability, (method, question) in questions.items():
            if capability in self.declared or arguments.get("bold"):
                came_back.append(self.ask(send, method, question))
        return came_back

    def call(self, params, send, general):
        arguments = params.get("arguments", {})
        then = arguments.get("then", "answer")
        # With a key it does what a provider promises that takes one: an act once, and the answer every time.
        if "key" not in arguments or first_with(arguments["key"]):
            append(arguments.get("text", ""))
        elif then == "die once":
            then = "answer"
        if then == "await":
            for _ in range(6000):
                if os.path.exists(arguments["until"]):
                    break
                time.sleep(0.01)
        if then in ("die", "die once"):
            os._exit(9)
        if then == "error":
            return text_result(arguments["words"], error=True)
        if then == "tell":
            return text_result(json.dumps(self.tell(arguments, params, send, general)))
        return text_result("done: " + arguments.get("text", ""))

    def handle(self, message, send, general):
        method, params = message["method"], message.get("params", {})
        secret = " ".join(self.told)
        if method == "initialize":
            self.declared = params["capabilities"]
            return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": {
                "tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True},
                "prompts": {"listChanged": True}, "logging": {}, "completions": {}},
                "serverInfo": {"name": "adverse", "version": "1"}}}
        if method == "tools/list":
            return {"result": {"tools": [{"name": name, "description": secret, "inputSchema": {"type": "object"}}
                                         for name in ("append", "other")]}}
        if method == "tools/call":
            return {"result": self.call(params, send, general)}
        if method == "resources/list":
            return {"result": {"resources": [{"uri": f"ledger://{s}", "name": s} for s in self.told]}}
        if method == "resources/templates/list":
            return {"result": {"resourceTemplates": []}}
        if method == "resources/read":
            return {"result": {"contents": [{"uri": params["uri"], "text": "told: " + secret}]}}
        if method == "prompts/list":
            return {"result": {"prompts": [{"name": s} for s in self.told]}}
        if method == "prompts/get":
            return {"result": {"messages": [{"role": "user", "content": {"type": "text", "text": "told: " + secret}}]}}
        if method == "completion/complete":
            return {"result": {"completion": {"values": self.told}}}
        if method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel", "ping"):
            return {"result": {}}
        return {"error": {"code": -32601, "message": "no such method"}}


def stdio():
    session, lock = Session(), threading.Lock()

    def send(message):
        with lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def work(message):
        send({"jsonrpc": "2.0", "id": message["id"], **session.handle(message, send, send)})

    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            session.take_answer(message)
        elif "id" in message:
            threading.Thread(target=work, args=(message,), daemon=True).start()


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions = {}

    def log_message(self, *unused):  # pylint: disable=arguments-differ
        pass

    def session(self):
        return self.sessions.get(self.headers.get("Mcp-Session-Id", ""))

    def reply(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True

    def event(self, message):
        data = f"data: {json.dumps(message)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def do_GET(self):
        session = self.session()
        if os.environ.get("NO_GET") or session is None:
            return self.reply(405 if session else 404)
        self.begin_events()
        try:
            while True:
                message = session.general.get(timeout=600)
                if message is None:
                    break
                self.event(message)
            self.wfile.write(b"0\r\n\r\n")
        except (OSError, queue.Empty):
            pass
        return None

    def do_DELETE(self):
        session = self.sessions.pop(self.headers.get("Mcp-Session-Id", ""), None)
        if session:
            session.general.put(None)
        self.reply(200 if session else 404)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if message.get("method") == "initialize":
            session = Session()
            self.sessions[session.id] = session
            answer = session.handle(message, None, None)
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode()
            return self.reply(200, body, [("Mcp-Session-Id", session.id)])
        session = self.session()
        if session is None:
            return self.reply(404)
        if "method" not in message:
            session.take_answer(message)
        if "method" not in message or "id" not in message:
            return self.reply(202)
        if message["method"] != "tools/call":
            answer = session.handle(message, session.general.put, session.general.put)
            return self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode())
        self.begin_events()
        try:
            answer = session.handle(message, self.event, session.general.put)
            self.event({"jsonrpc": "2.0", "id": message["id"], **answer})
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass
        return None


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def main():
    if "--http" in sys.argv:
        server = Server(("127.0.0.1", 0), Http)
        print(server.server_address[1], flush=True)
        server.serve_forever()
    else:
        stdio()


main()
