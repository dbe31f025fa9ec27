"""Agents of different tenants and subjects on one gateway: whatever a tool server says to one, in every way that MCP has,
the other never hears; and nothing that one agent knows or guesses lets it hear, answer or stop what is the other's.

usage: tenants_test.py stdio|http     the upstream's transport
"""
import http.client
import json
import pathlib
import secrets
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/ground"))
from ground import MODERN, Agent, Ground, text_of, verdict, wait_for

TRANSPORT = sys.argv[1]
GRANTS = {"led__append": 'cap = 100\ncost = "none"'}
CAPABILITIES = {"sampling": {}, "elicitation": {}, "roots": {}}


class Party:
    """One agent with a secret, all that it heard, and in 2025 its general stream."""

    def __init__(self, ground, gateway, name, era):
        self.ground, self.name, self.era = ground, name, era
        self.secret = f"{name}-{secrets.token_hex(8)}"
        self.permit, token = ground.mint(GRANTS)
        self.agent = Agent(gateway.port, token, era, {} if era == MODERN else CAPABILITIES)
        self.streams = []
        self.asked = []
        if era != MODERN:
            self.listen()

    def listen(self, headers=None):
        """Reads a GET stream on a thread; its status."""
        response, connection = self.agent.stream(headers)
        self.streams.append(connection)

        def read():
            try:
                while line := response.readline():
                    self.agent.heard.append(line)
                    if line.startswith(b"id:"):
                        self.agent.events.append(line[3:].strip().decode())
                    if line.startswith(b"data:") and len(line) > 7:
                        self.answer(json.loads(line[5:]))
            except (OSError, ValueError, AttributeError, http.client.HTTPException):
                pass  # closed

        threading.Thread(target=read, daemon=True).start()
        return response.status

    def answer(self, message):
        """As a client that does all it is asked."""
        if "method" in message and "id" in message:
            self.asked.append(message)
            self.agent.post({"jsonrpc": "2.0", "id": message["id"], "result": {"said": f"answer of {self.secret}"}})

    def tell(self, text, more=None):
        return self.agent.request("tools/call", {
            "name": "led__append", "arguments": {"text": text, "then": "tell", "secret": self.secret, **(more or {})},
            "_meta": {"progressToken": 1}}, on_message=self.answer)

    def heard(self):
        return b"".join(self.agent.heard).decode("utf-8", "replace")

    def close(self):
        for connection in self.streams:
            connection.close()


def lists(party):
    """All that can be asked for without a call."""
    agent = party.agent
    answers = [agent.request(method) for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list")]
    names = [entry["name"] for answer in answers for kind in ("resources", "prompts")
             for entry in answer.get("result", {}).get(kind, [])]
    for name in [n for n in names if n.startswith("led__")] or ["led__none"]:
        answers.append(agent.request("prompts/get", {"name": name}))
        answers.append(agent.request("completion/complete", {"ref": {"type": "ref/prompt", "name": name},
                                                             "argument": {"name": "a", "value": ""}}))
    return answers


def check_apart(ground, what, one, other):
    for party, stranger in ((one, other), (other, one)):
        ground.check(f"{what}: {party.name} heard of {stranger.name}", stranger.secret in party.heard(), False)


def talk(ground, gateway, era_one, era_two):
    what = f"{TRANSPORT}, {era_one} and {era_two}"
    one, two = Party(ground, gateway, "one", era_one), Party(ground, gateway, "two", era_two)
    parties = (one, two)
    for party in parties:
        answer = party.tell(f"{what} {party.name}")
        ground.check(f"{what}: {party.name} is answered", verdict(answer), "done")
        if party.era != MODERN:
            ground.check(f"{what}: {party.name} was asked", sorted(m["method"] for m in party.asked),
                         ["elicitation/create", "roots/list", "sampling/createMessage"])
            ground.check(f"{what}: {party.name}'s own words came back", text_of(answer).count(party.secret), 3)
    # At the same time, with questions that were never declared in 2026.
    answers = {}
    threads = [threading.Thread(target=lambda p=p: answers.update({p.name: p.tell(f"{what} both {p.name}", {"bold": True})}))
               for p in parties]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    ground.check(f"{what}: both are answered", sorted((name, verdict(a)) for name, a in answers.items()),
                 [("one", "done"), ("two", "done")])
    for party in parties:
        answers = lists(party)
        if party.era != MODERN:
            wait_for(f"{what}: the general stream of {party.name}", lambda: "general " + party.secret in party.heard())  # pylint: disable=cell-var-from-loop
        ground.check(f"{what}: {party.name} hears its own", party.heard(), lambda text: party.secret in text)  # pylint: disable=cell-var-from-loop
        ground.check(f"{what}: {party.name} lists", [("result" in a) for a in answers[:4]], [True] * 4)
    check_apart(ground, what, one, two)
    steal(ground, what, one, two)
    steal(ground, what, two, one)
    check_apart(ground, what + ", after all attempts", one, two)
    for party in parties:
        party.close()


def steal(ground, what, thief, owner):
    """With all that the owner's connection ever showed, under the thief's own token."""
    agent = thief.agent
    # Resources and prompts by the names they have for their owner.
    for answer in (agent.request("resources/read", {"uri": f"ledger://{owner.secret[:8]}"}),
                   agent.request("prompts/get", {"name": "led__" + owner.secret[:8]})):
        ground.check(f"{what}: what another was told", owner.secret in json.dumps(answer), False)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    if owner.era != MODERN:
        session = {"Mcp-Session-Id": owner.agent.session, "MCP-Protocol-Version": owner.agent.era}
        saved = agent.session, agent.era
        agent.era = owner.agent.era
        ground.check(f"{what}: another's session, POST", agent.post(ping, session)[0], 404)
        agent.session = saved[0]
        for headers in ({}, {"Last-Event-ID": "0-0"}, *({"Last-Event-ID": event} for event in owner.agent.events[-3:])):
            ground.check(f"{what}: another's session, GET", thief.listen({**session, **headers}), 404)
        connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=60)
        connection.request("DELETE", "/mcp", headers={**agent.headers(), **session})
        ground.check(f"{what}: another's session, DELETE", connection.getresponse().status, 404)
        connection.close()
        agent.session, agent.era = saved
        ground.check(f"{what}: whose session goes on", owner.agent.post(ping)[0], 200)
    if thief.era != MODERN:
        # Another's event ids in one's own session: what comes is one's own, or nothing.
        for event in dict.fromkeys(owner.agent.events):
            thief.listen({"Last-Event-ID": event})
        thief.listen()
    # A question of the owner's, answered by the thief; its call, cancelled by the thief.
    until = ground.path("until-" + secrets.token_hex(4))
    done = []
    text = f"{what} stolen {secrets.token_hex(4)}"
    thread = threading.Thread(target=lambda: done.append(owner.agent.call(
        "led__append", {"text": text, "then": "await", "until": until})), daemon=True)
    thread.start()
    wait_for("carried out", lambda: ground.effects(text))
    if thief.era != MODERN:
        for number in range(1, 30):
            agent.post({"jsonrpc": "2.0", "id": number, "result": {"said": "stolen"}})
            agent.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    open(until, "w", encoding="ascii").close()
    thread.join(60)
    ground.check(f"{what}: a call that another wanted cancelled", [text_of(a) for a in done], [f"done: {text}"])


def keys_apart(ground, gateway):
    """The same key, the same act: two subjects, two calls, and neither may look at the other's."""
    ids = []
    for _ in range(2):
        _, token = ground.mint(GRANTS)
        agent = Agent(gateway.port, token)
        answer = agent.call("led__append", {"text": "same"}, key="same")
        ground.check("same key, other permit", verdict(answer), "done")
        ids.append(answer["result"]["_meta"]["dev.tallystick/call"]["call_id"])
        for call_id in ids[:-1]:
            status = agent.call("tally__call_status", {"call_id": call_id})
            ground.check("another's call is not to be seen", (status["result"].get("isError"), "same" in text_of(status)),
                         (True, False))
    ground.check("two calls", (len(set(ids)), ground.effects("same")), (2, 2))


def another_tenant(ground, gateway):
    """A gateway speaks for one tenant: a token of another is no token there."""
    ground.add_tenant("globex", "globex-")
    _, token = ground.mint(GRANTS, tenant="globex", who="globex-operator")
    agent = Agent.__new__(Agent)
    agent.port, agent.token, agent.session, agent.heard, agent.events = gateway.port, token, None, [], []
    agent.capabilities, agent._last_id = {}, 0  # pylint: disable=protected-access
    for era in ("2025-11-25", MODERN):
        agent.era = era
        method = "tools/list" if era == MODERN else "initialize"
        meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}}
        params = {"_meta": meta} if era == MODERN else {"protocolVersion": era, "capabilities": {},
                                                       "clientInfo": {"name": "t", "version": "1"}}
        status, _ = agent.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        ground.check(f"another tenant's token, {era}", status, 401)


def main():
    with Ground() as ground:
        upstream = ground.stdio_upstream() if TRANSPORT == "stdio" else ground.http_upstream()
        gateway = ground.add_gateway("gateway", upstream).start()
        for eras in (("2025-11-25", "2025-11-25"), ("2025-11-25", MODERN), (MODERN, MODERN), ("2025-03-26", "2025-06-18")):
            talk(ground, gateway, *eras)
        keys_apart(ground, gateway)
        another_tenant(ground, gateway)
    return ground.report(f"tenants, {TRANSPORT}")


sys.exit(main())
