// Orders as JSON lines on stdin, answers as JSON lines on stdout: the same for every client, so that one driver asks
// them all. `open` makes a session and returns what is called on it.
import readline from 'node:readline';

export function obey(open) {
  const sessions = new Map();
  const orders = {
    async connect(order) {
      const session = await open(order);
      sessions.set(order.session, session);
      return { revision: session.revision };
    },
    async list(order) {
      return { tools: (await sessions.get(order.session).list()).map((tool) => tool.name) };
    },
    async call(order) {
      const params = { name: order.name, arguments: order.arguments };
      if (order.meta) params._meta = order.meta;
      return { result: await sessions.get(order.session).call(params, { timeout: order.timeout_ms ?? 60_000 }) };
    },
    async close(order) {
      await sessions.get(order.session).close();
      sessions.delete(order.session);
      return {};
    },
  };
  const lines = readline.createInterface({ input: process.stdin });
  lines.on('line', async (line) => {
    const order = JSON.parse(line);
    let answer;
    try {
      answer = await orders[order.do](order);
    } catch (error) {
      answer = { threw: { type: error.constructor.name, message: error.message, code: error.code, data: error.data } };
    }
    process.stdout.write(JSON.stringify({ n: order.n, ...answer }) + '\n');
  });
  lines.on('close', () => process.exit(0));
}
