/** A JSON body with other values in some of its fields. One that is no JSON object stays as it is. */
export function overridden(
  bytes: Buffer,
  contentType: string | undefined,
  params: Readonly<Record<string, unknown>>,
): Buffer {
  if (!/^application\/(?:[\w.+-]+\+)?json\b/i.test(contentType ?? '')) return bytes;
  try {
    const body: unknown = JSON.parse(bytes.toString('utf8'));
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return bytes;
    return Buffer.from(JSON.stringify({ ...body, ...params }));
  } catch {
    // The provider says what is wrong with it.
    return bytes;
  }
}
