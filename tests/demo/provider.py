#!/usr/bin/env python3
"""A payment provider for the demo: carries out every refund that it is asked for, duplicates and all.

usage: provider.py FOLDER

  POST /refunds     {"customer": …, "amount": …}: appends a line to FOLDER/ledger.jsonl, then answers
  FOLDER/ports      "PROVIDER_PORT CONTROL_PORT", written when both listen
  FOLDER/requests   a line for each request received

On the control port it is told how to behave:
  POST /lose-next   the next refund is carried out, and its answer is lost
  POST /slow-next   the next refund is carried out, and its answer takes three seconds
  POST /deaf        it stops listening: connections are refused, so nothing can be sent
  POST /hear        it listens again, on the same port
"""

import json
import os
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

folder = sys.argv[1]
lock = threading.Lock()
next_refund = []  # how to treat the refunds to come: "lose", "slow"


def append(name, line):
    """On disk before anybody is answered."""
    with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def lines(name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return sum(1 for _ in file)
    except FileNotFoundError:
        return 0


class Quiet(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Refunds(Quiet):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with lock:
            treatment = next_refund.pop() if next_refund else ""
            append("requests", json.dumps(request))
            refund = {"refund": f"r_{lines('ledger.jsonl') + 1:04}", **request}
            append("ledger.jsonl", json.dumps(refund))
        if treatment == "slow":
            time.sleep(3)
        if treatment == "lose":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.answer(200, refund)


class Server(ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Refunds)
port = server.server_address[1]
threading.Thread(target=server.serve_forever, daemon=True).start()


class Control(Quiet):
    def do_POST(self):
        global server
        if self.path in ("/lose-next", "/slow-next"):
            next_refund.append(self.path[1:].split("-")[0])
        elif self.path == "/deaf":
            server.shutdown()
            server.server_close()
        elif self.path == "/hear":
            server = Server(("127.0.0.1", port), Refunds)
            threading.Thread(target=server.serve_forever, daemon=True).start()
        else:
            return self.answer(404, {"error": "no such order"})
        self.answer(200, {})


control = Server(("127.0.0.1", 0), Control)
with open(os.path.join(folder, "ports.new"), "w", encoding="utf-8") as file:
    file.write(f"{port} {control.server_address[1]}\n")
os.rename(os.path.join(folder, "ports.new"), os.path.join(folder, "ports"))
control.serve_forever()
