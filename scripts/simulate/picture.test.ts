import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { definePolicy } from 'redrive';
import { describe, expect, it } from 'vitest';
import { type Options, readArguments } from './arguments.ts';
import { FINE_BUCKET_MS } from './columns.ts';
import { compare } from './compare.ts';
import { drawPicture } from './picture.ts';
import { readPolicy } from './policy-source.ts';

const root = join(import.meta.dirname, '..', '..');

describe('the picture', () => {
  const policy = definePolicy({ maxAttempts: 6 });
  const comparison = compare(policy, { clients: 50, outage: '1s', bucket: FINE_BUCKET_MS });
  const picture = drawPicture(comparison, 'A <title> & more');

  it('has a row for each jitter, a title, a legend and axes with units', () => {
    for (const jitter of comparison.simulations.keys()) {
      expect(picture).toContain(`class="name" x="28"`);
      expect(picture).toContain(`>${jitter}</text>`);
    }
    expect(picture).toContain('>A &#60;title&#62; &#38; more</text>');
    expect(picture).toMatch(/>refused: down<.*>capacity 500\/s</s);
    expect(picture).toMatch(/>2 s<.*>time since the first call; load in attempts per second</s);
  });

  it('says to those who cannot see it what it shows', () => {
    expect(picture).toMatch(/<desc id="desc">.*Jitter none: through \d+ %, peak [\d,]+\/s, /);
  });

  it('is well-formed, and has no number that is none', () => {
    const open = picture.match(/<[a-z][^>]*[^/]>/g)!.length;
    expect(picture.match(/<\/[a-z]+>/g)).toHaveLength(open);
    expect(picture).not.toMatch(/NaN|Infinity|undefined/);
  });

  it('is the same each time', () => {
    expect(drawPicture(comparison, 'A <title> & more')).toBe(picture);
  });

  it('has wider columns where they are asked for', () => {
    expect(drawPicture(comparison, undefined, 500).length).toBeLessThan(picture.length);
  });

  it('shows a world in which nobody got through', () => {
    const hopeless = compare(policy, { clients: 5, outage: '1h', bucket: FINE_BUCKET_MS });
    expect(drawPicture(hopeless)).toContain('>–</text>');
  });

  it('of the guide is what its command draws', () => {
    const command =
      'docs/images/choosing-a-policy.json --clients 1000 --spread 500ms --outage 30s --capacity 100';
    const title = 'One outage, 1,000 clients: the same policy with each jitter';
    const options = readArguments([...command.split(' '), '--title', title]) as Options;
    const source = readPolicy(options.policy, root);
    const drawn = drawPicture(
      compare(source.policy, { ...options.world, bucket: FINE_BUCKET_MS }),
      options.title,
    );
    expect(readFileSync(join(root, 'docs/images/choosing-a-policy.svg'), 'utf8')).toBe(drawn);
  });
});
