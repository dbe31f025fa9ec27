// Stands between the conformance suite and the gateway, on loopback, and does two things that the suite cannot: it adds
// the permit's bearer token, and it says `upstream__name` where the suite says `name` of a tool or prompt. All else,
// Host and Origin too, goes through as it came.
// usage: adapter.mjs GATEWAY_PORT UPSTREAM TOKEN_FILE      the first line printed is its url
import { readFileSync } from "node:fs";
import { createServer, request as ask } from "node:http";
import { Transform } from "node:stream";

const [port, upstream, tokenFile] = process.argv.slice(2);
const prefix = `${upstream}__`;
const token = readFileSync(tokenFile, "utf8").trim();
const BODY_BYTES_MAX = 4 << 20;

function withPrefix(body) {
  let message;
  try {
    message = JSON.parse(body);
  } catch {
    return body;
  }
  const named =
    message?.method === "tools/call" || message?.method === "prompts/get" ? message.params : message?.params?.ref;
  if (typeof named?.name !== "string") return body;
  named.name = prefix + named.name;
  return Buffer.from(JSON.stringify(message));
}

// Names of tools and prompts in answers begin with a quote and the prefix; it may be cut by a chunk's end.
function withoutPrefix() {
  const mark = `"${prefix}`;
  let kept = "";
  return new Transform({
    transform(chunk, _, done) {
      const text = (kept + chunk.toString("latin1")).replaceAll(mark, '"');
      let keep = Math.min(mark.length - 1, text.length);
      while (keep > 0 && !mark.startsWith(text.slice(-keep))) --keep;
      kept = text.slice(text.length - keep);
      done(null, Buffer.from(text.slice(0, text.length - keep), "latin1"));
    },
    flush: (done) => done(null, Buffer.from(kept, "latin1")),
  });
}

const ours = () => `:${server.address().port}`;
const toGateway = (value) => (value.endsWith(ours()) ? value.slice(0, -ours().length) + `:${port}` : value);

function headersFor(incoming, body, renamed) {
  const headers = ["Authorization", `Bearer ${token}`];
  for (let at = 0; at < incoming.rawHeaders.length; at += 2) {
    const [name, value] = incoming.rawHeaders.slice(at, at + 2);
    const known = name.toLowerCase();
    if (["content-length", "transfer-encoding", "connection", "authorization"].includes(known)) continue;
    if (known === "host" || known === "origin") headers.push(name, toGateway(value));
    else if (known === "mcp-name" && renamed && !value.startsWith("=?")) headers.push(name, prefix + value.trim());
    else headers.push(name, value);
  }
  if (body.length > 0) headers.push("Content-Length", String(body.length));
  return headers;
}

const server = createServer((incoming, outgoing) => {
  const chunks = [];
  let bytes = 0;
  incoming.on("data", (chunk) => {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) incoming.destroy();
    else chunks.push(chunk);
  });
  incoming.on("end", () => {
    const came = Buffer.concat(chunks);
    const body = withPrefix(came);
    const { method, url: path } = incoming;
    const options = { host: "127.0.0.1", port, method, path, agent: false, setHost: false };
    const onward = ask({ ...options, headers: headersFor(incoming, body, body !== came) }, (answer) => {
      const headers = [];
      for (let at = 0; at < answer.rawHeaders.length; at += 2) {
        const name = answer.rawHeaders[at];
        if (/^(content-length|transfer-encoding|connection)$/i.test(name)) continue;
        headers.push(name, answer.rawHeaders[at + 1]);
      }
      outgoing.writeHead(answer.statusCode, headers).flushHeaders();
      answer.pipe(withoutPrefix()).pipe(outgoing);
      answer.on("aborted", () => outgoing.destroy());
    });
    onward.on("error", () => outgoing.destroy());
    // Hanging up is a message of its own in the era 2026-07-28.
    outgoing.on("close", () => onward.destroy());
    onward.end(body);
  });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1${ours()}/mcp`));
