import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { statuses } from './problem.ts';
import { httpReference } from './reference.ts';

const file = new URL('../../../../docs/reference/http-api.md', import.meta.url);

describe('the reference of the API', () => {
  it('is what the API says of itself', async () => {
    const page = await httpReference();
    expect(readFileSync(file, 'utf8') === page, 'run `npm run generate`').toBe(true);
  });

  it('has every route, every code and every field', async () => {
    const page = await httpReference();
    for (const route of ['POST /api/v1/retries', 'GET /api/v1/events', 'GET /health/ready']) {
      expect(page).toContain(`### ${route}\n`);
    }
    for (const [code, status] of Object.entries(statuses)) {
      expect(page).toContain(`| ${status} | \`${code}\` |`);
    }
    expect(page).toContain('| `retry_count` |');
    expect(page).not.toContain('undefined');
    expect(page).not.toContain('[object Object]');
  });
});
