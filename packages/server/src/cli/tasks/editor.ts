/** Lets a person change a payload in their own editor. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CommandError, type Io } from '../command.ts';
import { usageError } from '../inputs.ts';

/** `undefined`: it was left as it was. `discard` takes the file away once what is in it has arrived. */
type Edited = { bytes: Uint8Array; file: string; discard: () => void } | undefined;

/**
 * The file is the person's alone, and stays where it is when something goes wrong after the editing: their work is in it.
 */
export async function editInEditor(
  bytes: Uint8Array,
  extension: 'json' | 'txt',
  io: Io,
): Promise<Edited> {
  const editor = io.env['VISUAL'] || io.env['EDITOR'];
  if (!editor)
    throw usageError('No editor is set. Set EDITOR, or give the payload: --payload @file.');
  const folder = mkdtempSync(join(tmpdir(), 'redrive-edit-'));
  const discard = (): void => rmSync(folder, { recursive: true, force: true });
  const file = join(folder, `payload.${extension}`);
  writeFileSync(file, bytes, { mode: 0o600 });
  const code = await run(editor, file);
  if (code !== 0) {
    discard();
    throw new CommandError(`The editor ended with ${code}. Nothing was changed.`, {
      code: 'EDITOR_FAILED',
    });
  }
  const after = readFileSync(file);
  if (!after.equals(bytes)) return { bytes: after, file, discard };
  discard();
  return undefined;
}

/** `EDITOR` may have options of its own: a shell takes it apart, and never sees the path as part of it. */
function run(editor: string, file: string): Promise<number | string> {
  const child =
    process.platform === 'win32'
      ? spawn(`${editor} "${file}"`, { stdio: 'inherit', shell: true })
      : spawn('sh', ['-c', `${editor} "$@"`, editor, file], { stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? signal ?? 1));
  });
}
