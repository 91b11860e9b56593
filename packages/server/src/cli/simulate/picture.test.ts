import { definePolicy } from 'redrive';
import { describe, expect, it } from 'vitest';
import { FINE_BUCKET_MS } from './columns.ts';
import { compare } from './compare.ts';
import { drawPicture } from './picture.ts';

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
});
