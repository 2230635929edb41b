// Makes the calls of `peer_clients.py` with a TypeScript SDK, and prints what it saw as JSON.

import { createRequire } from 'node:module';
import { join } from 'node:path';

const job = JSON.parse(process.argv[2]);
const require = createRequire(join(job.modules, 'package.json'));
// The first version has a module for each class, the second one has two modules.
const sdk = job.package === '@modelcontextprotocol/sdk'
  ? {
      ...require('@modelcontextprotocol/sdk/client/index.js'),
      ...require('@modelcontextprotocol/sdk/client/streamableHttp.js'),
      ...require('@modelcontextprotocol/sdk/client/stdio.js'),
      ...require('@modelcontextprotocol/sdk/types.js')
    }
  : { ...require('@modelcontextprotocol/client'), ...require('@modelcontextprotocol/client/stdio') };

const client = new sdk.Client({ name: 'proof', version: '1' }, { capabilities: { elicitation: { form: {} } } });
const questions = [];
client.setRequestHandler(sdk.ElicitRequestSchema ?? 'elicitation/create', (request) => {
  questions.push(request.params.message);
  return { action: 'accept', content: { approve: true } };
});
const [command, ...args] = job.command;
await client.connect(
  job.url
    ? new sdk.StreamableHTTPClientTransport(new URL(job.url))
    : new sdk.StdioClientTransport({ command, args, env: job.environ, stderr: 'inherit' })
);
const [name, given, invalidArguments] = job.read;
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const read = (await client.callTool({ name, arguments: given })).structuredContent;
const invalid = (await client.callTool({ name, arguments: invalidArguments })).content[0].text;
const unknown = await client.callTool({ name: 'nowhere', arguments: {} }).then(
  (result) => JSON.stringify(result),
  (error) => error.message
);
const write = (await client.callTool({ name: job.write[0], arguments: job.write[1] })).structuredContent;
await client.close();
console.log(JSON.stringify({ tools, read, invalid, unknown, questions, write }));
