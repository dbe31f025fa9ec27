"""A receiver of webhooks that does what a test tells it to, and how docs/webhooks.md says that messages are verified."""
import http.server
import json
import pathlib
import re
import threading
import time

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs/webhooks.md"


def snippet(language):
    return re.search(rf"```{language}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S).group(1)


_documented = {}
exec(snippet("python"), _documented)  # pylint: disable=exec-used
verify = _documented["verify"]


class Message:
    def __init__(self, path, headers, body):
        self.path, self.headers, self.body, self.at = path, headers, body, time.monotonic()
        self.id = headers["webhook-id"]
        document = json.loads(body)
        self.type, self.data, self.timestamp = document["type"], document["data"], document["timestamp"]
        self.call = self.data.get("call_id")
        self.status = None  # that it was answered with


class Receiver:
    """`answer(message)`: a status; it may take its time."""

    def __init__(self, answer=lambda message: 200):
        self.answer, self.got, self.at_once, self.most_at_once = answer, [], 0, 0
        self._lock = threading.Lock()
        self._server, self.port = None, 0
        self.open()

    def open(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *arguments):  # pylint: disable=arguments-differ
                pass

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                message = Message(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                with receiver._lock:
                    receiver.at_once += 1
                    receiver.most_at_once = max(receiver.most_at_once, receiver.at_once)
                    receiver.got.append(message)
                try:
                    message.status = receiver.answer(message)
                    self.send_response(message.status)
                    if message.status in (301, 302, 307, 308):
                        self.send_header("Location", "/redirected")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass  # it has hung up
                finally:
                    with receiver._lock:
                        receiver.at_once -= 1

        class Server(http.server.ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request, client_address):
                pass

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def url(self, path="/hook"):
        return f"http://127.0.0.1:{self.port}{path}"

    def of(self, call):
        """All messages about a call, in the order in which they came."""
        return [message for message in list(self.got) if message.call == call]

    def taken(self, call):
        """Types that were answered with 200, in that order."""
        return [message.type for message in self.of(call) if message.status == 200]
