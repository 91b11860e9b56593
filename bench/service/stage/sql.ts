import pg from 'pg';

/** The one number that a statement answers. */
export async function numberIn(url: string, text: string): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' });
    return Number(rows[0]?.[0]);
  } finally {
    await client.end();
  }
}

const LOOK_MS = 10;

/** Looks until a statement answers this number. */
export async function untilNumber(
  url: string,
  text: string,
  wanted: number,
  withinMs: number,
): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  const endMs = performance.now() + withinMs;
  try {
    for (;;) {
      const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' });
      const found = Number(rows[0]?.[0]);
      if (found === wanted) return;
      if (performance.now() > endMs) throw new Error(`${text}: ${found}, and not ${wanted}`);
      await new Promise((resolve) => {
        setTimeout(resolve, LOOK_MS);
      });
    }
  } finally {
    await client.end();
  }
}
