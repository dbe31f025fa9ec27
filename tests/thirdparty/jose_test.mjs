// Verifies every exported JWS with npm's jose against the exported JWK Set, and sees spoiled ones refused.
// usage: node jose_test.mjs FIXTURES      exit 77: npm packages are not installed, nothing was checked
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

if (!existsSync(new URL('node_modules', import.meta.url))) {
  console.log('skipped: run `npm ci` in tests/thirdparty first');
  process.exit(77);
}
const jose = await import('jose');
const fixtures = process.argv[2];
const read = (name) => readFileSync(join(fixtures, name), 'utf8');
const set = jose.createLocalJWKSet(JSON.parse(read('keys.jwks')));
const options = { algorithms: ['Ed25519'], typ: 'tallystick-receipt+json' };

function demand(right, what) {
  if (!right) throw new Error(what);
}

const ids = read('ids').trim().split('\n');
demand(ids.length >= 6, 'too few receipts');
for (const id of ids) {
  const jws = read(`${id}.jws`).trim();
  const { payload, protectedHeader } = await jose.compactVerify(jws, set, options);
  const receipt = JSON.parse(new TextDecoder().decode(payload));
  demand(receipt.receipt_id === id, `${id}: the JWS carries another receipt_id`);
  demand(receipt.key_id === protectedHeader.kid, `${id}: kid and key_id differ`);
  demand(protectedHeader.alg === 'Ed25519', `${id}: alg is ${protectedHeader.alg}`);

  const spoiled = jws.replace(/\.(.)/, (_, c) => '.' + (c === 'e' ? 'f' : 'e'));
  demand(spoiled !== jws, 'nothing was spoiled');
  const refused = await jose.compactVerify(spoiled, set, options).then(() => false, () => true);
  demand(refused, `${id}: a spoiled payload was accepted`);
}
console.log(`jose verified ${ids.length} JWS and refused spoiled ones`);
