// @modelcontextprotocol/client, the second generation of the TypeScript SDK: 2025-11-25, or 2026-07-28 if asked to.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { obey } from './lines.mjs';

obey(async ({ url, token, era }) => {
  const headers = { Authorization: `Bearer ${token}` };
  const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy';
  const client = new Client({ name: 'client2', version: '1' }, { capabilities: {}, versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return {
    revision: client.getNegotiatedProtocolVersion(),
    list: async () => (await client.listTools()).tools,
    call: (params, options) => client.callTool(params, options),
    close: () => client.close(),
  };
});
