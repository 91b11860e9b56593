import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { id, type Stage, stage } from '../stage.test.ts';

const evil = '\u001b]0;owned\u0007\u009b31m\u202e';
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;

describe('redrive review', () => {
  it('lists what is open, by filters too', async () => {
    const scene = await stage();
    expect((await scene.redrive('review list')).out).toBe('There are none.\n');
    await fail(scene, 2);
    const { out } = await scene.redrive('review list', { columns: 200 });
    expect(out).toMatch(
      /^ID +REASON +DESTINATION +ERROR +LAST SEEN +TIMES +STATE +MESSAGE ID +AT \(UTC\)$/m,
    );
    expect(out).toMatch(/^ 2 +PERMANENT +http\S+\/hook +HTTP_422 business\b.* +1 +open/m);
    expect(out).toContain('redrive review show 2 tells more');
    expect(await scene.json('review list --limit 1')).toMatchObject([{ id: 2, state: 'open' }]);
    expect(await scene.json('review list --reason EXPIRED')).toEqual([]);
    expect(await scene.json(['review', 'list', '--message', id(1), '--since', '1h'])).toHaveLength(
      1,
    );
    expect(await scene.redrive('review list --since 1h --from 2030-01-01')).toMatchObject({
      code: 2,
    });
  });

  it('sums up by cause', async () => {
    const scene = await stage();
    expect((await scene.redrive('review groups')).out).toBe('There are none.\n');
    await fail(scene, 2);
    expect((await scene.redrive('review groups')).out).toMatch(
      /^[0-9a-f]{16} +2 +http\S+ +PERMANENT HTTP_422/m,
    );
    expect(await scene.json('review groups --all')).toMatchObject([{ open: 2 }]);
  });

  it('writes on a cause who sees to it, and what is known', async () => {
    const scene = await stage();
    await fail(scene, 1);
    const [group] = await scene.json('review groups');
    const { fingerprint } = group as unknown as { fingerprint: string };
    const note = ['review', 'note', fingerprint, '--owner', 'ann', '--note', 'since Monday'];
    expect((await scene.redrive(note, { columns: 200 })).out).toMatch(/ann +since Monday/);
    const [told] = await scene.json(['review', 'note', fingerprint, '--no-note']);
    expect(told).toMatchObject({ fingerprint, owner: 'ann' });
    expect(told).not.toHaveProperty('note');
    expect((await scene.redrive(['review', 'note', fingerprint])).err).toContain('--owner');
    expect((await scene.redrive('review note nowhere --owner ann')).code).toBe(1);
  });

  it('shows an item with everything that is known', async () => {
    const scene = await stage();
    scene.receiver.body = 'no such customer';
    await fail(scene, 1);
    const { out } = await scene.redrive('review show 1');
    expect(out).toMatch(/^item +1$/m);
    expect(out).toMatch(/^state +open$/m);
    expect(out).toMatch(/● attempt 1 failed after \d+ ms: HTTP_422 business/);
    expect(out).toContain('no such customer');
    expect(out).toMatch(/^Payload\n\{\n {2}"order": 1\n\}$/m);
    expect(out).toContain(
      'redrive review replay 1, redrive review edit 1, redrive review discard 1',
    );
    expect((await scene.redrive('review show 99')).code).toBe(1);
    expect((await scene.redrive('review show first')).err).toContain(
      "'first' is not the number of an item.",
    );
  });

  it('sends items again, and says which it could not', async () => {
    const scene = await stage();
    await fail(scene, 2);
    scene.receiver.status = 200;
    const { out, err, code } = await scene.redrive('review replay 1 2 99');
    expect(out).toBe('✔ 1 is sent again.\n✔ 2 is sent again.\n');
    expect(err).toMatch(/^99: /);
    expect(code).toBe(1);
    await scene.event('done', 2);
    const [again] = await scene.json('review replay 1');
    expect(again).toMatchObject({ id: 1, error: { code: 'ITEM_CLOSED' } });
  });

  it('sends an item with another payload to somewhere else', async () => {
    const scene = await stage();
    await fail(scene, 1);
    scene.receiver.status = 200;
    const words = ['review', 'replay', '1', '--payload', '{"order":"fixed"}', '--header', 'x-b: 2'];
    await scene.redrive([...words, '--destination', `${scene.receiver.url}/new`]);
    await scene.event('done');
    expect(scene.receiver.received.at(-1)).toBe('{"order":"fixed"}');
  });

  it('closes and opens items', async () => {
    const scene = await stage();
    await fail(scene, 2);
    expect((await scene.redrive('review discard 1')).out).toContain(
      'redrive review restore brings it back',
    );
    expect((await scene.redrive('review resolve 2')).out).toBe('✔ 2 is resolved.\n');
    expect((await scene.redrive('review list --state discarded')).out).toMatch(/^ 1 /m);
    expect((await scene.redrive('review show 2')).out).toMatch(/^closed .* \(.*\) by local$/m);
    expect((await scene.redrive('review restore 1 2')).out).toContain('✔ 1 is open again.');
    expect(await scene.json('review list')).toHaveLength(2);
  });

  it('erases for good what is meant, and no more than that', async () => {
    const scene = await stage();
    await fail(scene, 1);
    const unsure = await scene.redrive('review erase 1');
    expect([unsure.code, unsure.err]).toEqual([2, expect.stringContaining('Add --yes')]);
    expect(await scene.json('review list')).toHaveLength(1);
    const { out } = await scene.redrive('review erase 1 --yes', { columns: 300 });
    expect(out).toMatch(/^✔ 1 is erased\.\nSomething of it may still be in these places:\n/);
    expect(out).toMatch(/^ {2}- Logs and traces .*\. Delete logs and traces .*\.$/m);
    expect(await scene.json('review erase 1 --yes')).toMatchObject([
      {
        state: 'erased',
        not_reached: expect.arrayContaining([
          expect.objectContaining({ what: 'logs' }),
        ]) as object[],
      },
    ]);
    expect(await scene.json('review show 1')).toMatchObject([{ state: 'erased' }]);
    expect(await scene.json('review erase 7 --yes')).toMatchObject([
      { id: 7, error: { code: 'ITEM_UNKNOWN' } },
    ]);
  });

  it('lets nothing that others wrote reach the terminal', async () => {
    const scene = await stage();
    scene.receiver.body = evil;
    await fail(scene, 1, { [evil]: evil });
    await scene.redrive([
      'review',
      'edit',
      '1',
      '--payload',
      JSON.stringify({ [evil]: `${evil}!` }),
    ]);
    for (const words of [
      'review list',
      'review groups',
      'review show 1',
      'bulk preview --all',
      'audit list',
    ]) {
      const { out, code } = await scene.redrive(words, { columns: 300 });
      expect(code).toBe(0);
      expect(out).not.toMatch(OBEYED);
      expect((await scene.redrive(`${words} --json`)).out).not.toMatch(OBEYED);
    }
  });
});

describe('redrive review edit', () => {
  it('writes changes that are given, and shows what they change', async () => {
    const scene = await stage();
    await fail(scene, 1);
    writeFileSync(join(scene.folder, 'fixed.json'), '{"order":1,"currency":"EUR"}');
    const { out, code } = await scene.redrive('review edit 1 --payload @fixed.json');
    expect(code).toBe(0);
    expect(out).toContain('What the edit changes\n/payload/currency\n  + "EUR"\n');
    expect((await scene.redrive('review show 1')).out).toContain('Payload, as it failed');
    await scene.redrive('review edit 1 --undo');
    expect((await scene.json('review show 1'))[0]).toMatchObject({ edited: false });
    expect((await scene.redrive('review edit 1 --undo --replay')).err).toContain(
      '--undo stands alone.',
    );
  });

  it('changes headers and destination too, and shows all of a long difference where that is wanted', async () => {
    const scene = await stage();
    await fail(scene, 1);
    const destination = `${scene.receiver.url}/new`;
    await scene.redrive([
      'review',
      'edit',
      '1',
      '--header',
      'x-a: 1',
      '--destination',
      destination,
    ]);
    const { out } = await scene.redrive('review show 1');
    expect(out).toMatch(/\/headers\/x-a\n {2}\+ "1"\n/);
    expect(out).toMatch(/\/destination\n {2}- .*\n {2}\+ .*new"\n/);
    const long = JSON.stringify(
      Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`f${i}`, i])),
    );
    await scene.redrive(['review', 'edit', '1', '--payload', long]);
    expect((await scene.redrive('review show 1')).out).toMatch(
      /\.\.\. \d+ more places: --full shows all/,
    );
    expect((await scene.redrive('review show 1 --full')).out).toContain('/payload/f59');
  });

  it('edits what is no JSON as text', async () => {
    const scene = await stage();
    scene.receiver.status = 422;
    await scene.redrive(['submit', scene.receiver.url, 'plain text', '--id', id(1)]);
    await scene.event('failed');
    const { out } = await scene.redrive('review edit 1', {
      env: { EDITOR: 'sed -i s/plain/other/' },
    });
    expect(out).toContain('What the edit changes');
    const [item] = await scene.json('review show 1');
    expect(item!['edit']).toEqual({
      payload_base64: Buffer.from('other text').toString('base64'),
      by: 'local',
    });
    const unchanged = await scene.json('review edit 1', { env: { EDITOR: 'true' } });
    expect(unchanged).toMatchObject([{ id: 1, edited: true }]);
  });

  it('opens an editor, and sends at once where that is wanted', async () => {
    const scene = await stage();
    await fail(scene, 1);
    scene.receiver.status = 200;
    const { out, code, err } = await scene.redrive('review edit 1 --replay', {
      env: { EDITOR: `sed -i s/1/2/` },
    });
    expect(err).toBe('');
    expect(code).toBe(0);
    expect(out).toContain('/payload/order\n  - 1\n  + 2\n');
    expect(out).toContain('✔ 1 is sent again.');
    await scene.event('done');
    expect(scene.receiver.received.at(-1)).toMatch(/^\{\s*"order": ?2\s*\}\s*$/);
  });

  it('goes on where the last edit ended', async () => {
    const scene = await stage();
    await fail(scene, 1);
    await scene.redrive(['review', 'edit', '1', '--payload', '{"order":5}']);
    await scene.redrive('review edit 1', { env: { VISUAL: 'sed -i s/5/6/' } });
    expect((await scene.json('review show 1'))[0]).toMatchObject({
      edit: { payload: { order: 6 } },
    });
  });

  it('changes nothing where nothing was changed, where the editor failed, where there is none', async () => {
    const scene = await stage();
    await fail(scene, 1);
    expect((await scene.redrive('review edit 1', { env: { EDITOR: 'true' } })).out).toBe(
      'Nothing was changed.\n',
    );
    const failed = await scene.redrive('review edit 1', { env: { EDITOR: 'false' } });
    expect([failed.code, failed.err]).toEqual([
      1,
      'The editor ended with 1. Nothing was changed.\n',
    ]);
    expect((await scene.redrive('review edit 1')).err).toContain('Set EDITOR');
    expect((await scene.json('review show 1'))[0]).toMatchObject({ edited: false });
  });

  it('keeps what somebody wrote where it cannot be taken', async () => {
    const scene = await stage();
    await fail(scene, 1);
    const { code, err } = await scene.redrive('review edit 1', {
      env: { EDITOR: 'sed -i s/{/[/' },
    });
    expect(code).toBe(2);
    const [, file] = /It is kept in (\S+);/.exec(err)!;
    expect(existsSync(file!)).toBe(true);
    rmSync(dirname(file!), { recursive: true });
  });
});

/** Items in the inbox: messages 1 to n, refused for good. */
async function fail(
  { receiver, redrive, event }: Stage,
  count: number,
  payload?: object,
): Promise<void> {
  receiver.status = 422;
  for (let digit = 1; digit <= count; digit++) {
    await redrive([
      'submit',
      receiver.url,
      JSON.stringify(payload ?? { order: digit }),
      '--id',
      id(digit),
    ]);
    await event('failed');
  }
}
