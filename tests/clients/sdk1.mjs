// @modelcontextprotocol/sdk, the first generation of the TypeScript SDK.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { obey } from './lines.mjs';

obey(async ({ url, token }) => {
  const headers = { Authorization: `Bearer ${token}` };
  const client = new Client({ name: 'sdk1', version: '1' }, { capabilities: {} });
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await client.connect(transport);
  return {
    revision: transport.protocolVersion,
    list: async () => (await client.listTools()).tools,
    call: (params, options) => client.callTool(params, undefined, options),
    close: () => client.close(),
  };
});
