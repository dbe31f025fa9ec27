"""A small server to send to: server.py [CERTIFICATE KEY]. Prints its port; ends when its stdin does."""
import http.server, json, os, ssl, sys, threading, time

seen = []


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if self.path != "/seen":
            seen.append(self.command + " " + self.path)
        path = self.path.split("?")[0]
        if path == "/seen":
            self.answer(200, json.dumps(seen).encode())
        elif path == "/echo":
            told = {"method": self.command, "path": self.path, "headers": self.headers.items(), "body": body}
            self.answer(200, json.dumps(told).encode(), [("Content-Type", "application/json; charset=utf-8")])
        elif path == "/redirect":
            self.answer(302, b"elsewhere", [("Location", "/landed")])
        elif path.startswith("/status/"):
            self.answer(int(path[8:]), b"as asked")
        elif path == "/silent":
            time.sleep(30)
        elif path == "/drip":
            self.send_response(200)
            self.end_headers()
            for _ in range(1000):
                self.wfile.write(b".")
                self.wfile.flush()
                time.sleep(0.03)
        elif path.startswith("/size/"):
            self.answer(200, b"x" * int(path[6:]))
        elif path.startswith("/unsized/"):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"x" * int(path[9:]))
        elif path == "/headers":
            self.answer(200, b"", [("X-%d" % i, "v" * 1000) for i in range(90)])
        elif path == "/hang-up":
            self.close_connection = True
        else:
            self.answer(404)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

    def handle(self):
        try:
            super().handle()
        except (ConnectionError, ssl.SSLError):
            pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
os._exit(0)
