/**
 * `node scripts/protocol.ts`: writes packages/server/src/cyoda/gen from the .proto files of the Cyoda protocol. The two
 * programs that do it are fetched by npx at the versions below: nobody else needs them, since the result is committed.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const programs = ['@bufbuild/buf@1.74.0', '@bufbuild/protoc-gen-es@2.16.0'];
const server = join(import.meta.dirname, '..', 'packages', 'server');
const names = ['cloudevents', 'cyoda'];

const template = {
  version: 'v2',
  plugins: [
    {
      local: 'protoc-gen-es',
      out: '../src/cyoda/gen',
      opt: ['target=ts', 'import_extension=ts'],
    },
  ],
};
const { status } = spawnSync(
  'npx',
  [
    '--yes',
    ...programs.flatMap((one) => ['--package', one]),
    'buf',
    'generate',
    '--template',
    JSON.stringify(template),
    ...names.flatMap((name) => ['--path', `${name}.proto`]),
  ],
  { cwd: join(server, 'proto'), stdio: 'inherit' },
);
if (status === 0) for (const name of names) sign(name);
process.exitCode = status ?? 1;

/** A test compares this line with the .proto file, so that neither is changed without the other. */
function sign(name: string): void {
  const hash = createHash('sha256').update(readFileSync(join(server, 'proto', `${name}.proto`)));
  const file = join(server, 'src', 'cyoda', 'gen', `${name}_pb.ts`);
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, `// ${name}.proto sha256:${hash.digest('hex')}\n${text}`);
}
